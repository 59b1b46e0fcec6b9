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

/// Makes entries of the bytes of files in either format, in the order of the files. Never fails:
/// what is damaged is passed over. Pure.
class Decoder {
 public:
  /// Begins a file, whose format its first bytes (up to kFileHeader) tell.
  void begin_file(std::string_view first_bytes);
  /// The bytes that follow are from the middle of the file.
  void skip_to_entry();

  /// Takes whole entries from the front of `bytes` and gives how many bytes these were. What is not
  /// taken is to be given again with more behind it.
  size_t feed(std::string_view bytes);
  /// There is no more: what is left of the lines of both streams.
  void finish();

  /// The next one; nothing when more bytes are needed.
  std::optional<Entry> take();
  /// Whether the one that was taken last began where a file was begun, or later.
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
    bool whole = true;  ///< its beginning was seen
    int64_t time_ns = 0;
  };
  Format format_ = Format::json_file;
  LocalKey key_;
  bool at_start_ = true;  ///< of a file whose header was not taken yet
  bool searching_ = false;
  Lines lines_[2];
  std::deque<Ready> ready_;
  bool last_whole_ = true;
};

/// Reads the log of a container, over all its files, also while they are written and rotated.
class Reader {
 public:
  /// Begins with the oldest entry.  Errors: not_found (there is no log), io.
  static Result<Reader> open(sys::Fd directory);

  /// What there is at this moment, and no more than that; the next one, or nothing at its end.
  Result<std::optional<Entry>> next();
  /// Lets next() give what has been written since as well.
  void go_on() { end_.reset(); }
  /// The last `count` entries. next() goes on behind them.  Errors: io.
  Result<std::deque<Entry>> tail(uint64_t count);
  /// The container has ended, and next() has given the last whole entry: what is left.
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
  bool file_ended_ = false;  ///< it was replaced, and has been read since
  std::optional<End> end_;
  Decoder decoder_;
};

}  // namespace berth::logs
