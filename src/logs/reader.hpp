// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "logs/entry.hpp"
#include "logs/line_cutter.hpp"
#include "logs/local.hpp"
#include "sys/fd/fd.hpp"

namespace berth::logs {

/// Decodes the files in either format into entries, in the order of the files. Never fails: skips
/// damage. Pure.
class Decoder {
 public:
  /// Begins a file; its first bytes (up to kFileHeader) show the format.
  void begin_file(std::string_view first_bytes);
  /// Call if the following bytes are from the middle of the file.
  void skip_to_entry();

  /// Consumes whole entries from the front of `bytes` and returns how many bytes these have. The
  /// caller passes the rest again, followed by more bytes.
  size_t feed(std::string_view bytes);
  /// Call when no more bytes follow: makes entries of the rest of both streams.
  void finish();

  /// The next entry; nothing when more bytes are needed.
  std::optional<Entry> take();
  /// Whether the last taken entry is complete: its beginning was in the bytes that were read.
  bool was_whole() const { return last_whole_; }

 private:
  size_t feed_json(std::string_view bytes);
  size_t feed_local(std::string_view bytes);
  void cut(const Frame& frame, std::string_view bytes);

  struct Ready {
    Entry entry;
    bool whole = true;
  };
  struct Lines {
    LineCutter cutter;
    bool whole = true;  ///< the beginning of the entry was seen
    int64_t time_ns = 0;
  };
  Format format_ = Format::json_file;
  LocalKey key_;
  bool at_start_ = true;  ///< the header of the file was not consumed yet
  bool searching_ = false;
  Lines lines_[2];
  std::deque<Ready> ready_;
  bool last_whole_ = true;
};

/// Reads the log of a container, over all its files, even while they are written and rotated.
class Reader {
 public:
  /// Begins with the oldest entry.  Errors: not_found (there is no log), io.
  static Result<Reader> open(sys::Fd directory);

  /// The next entry up to the end of the log at the time of open(), or nothing.
  Result<std::optional<Entry>> next();
  /// Makes next() continue beyond that end.
  void go_on() { end_.reset(); }
  /// The last `count` entries. next() continues after them.  Errors: io.
  Result<std::deque<Entry>> tail(uint64_t count);
  /// The rest, after the container has ended and next() has returned the last whole entry.
  std::vector<Entry> rest();

 private:
  struct File {
    sys::Fd fd;
    ino_t inode = 0;
  };
  struct End {
    ino_t inode = 0;
    uint64_t size = 0;
  };
  Result<void> open_file(File file, uint64_t offset);
  Result<File> open_named(const std::string& name) const;
  Result<std::vector<File>> open_all() const;
  Result<bool> read_more();
  Result<bool> next_file();
  Result<std::optional<File>> successor() const;
  Result<bool> begin_near_end(uint64_t window);

  sys::Fd directory_;
  File file_;
  uint64_t offset_ = 0;  ///< in file_, of the first byte in buffer_
  std::string buffer_;
  bool file_ended_ = false;  ///< the file was replaced, and has been read to its end since
  std::optional<End> end_;
  Decoder decoder_;
};

}  // namespace berth::logs
