// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "logs/entry.hpp"
#include "logs/line_cutter.hpp"
#include "logs/local.hpp"
#include "sys/fd/fd.hpp"

namespace berth::logs {

struct Settings {
  Format format = Format::json_file;
  uint64_t max_bytes = 0;  ///< a file of this size is rotated; 0: never
  uint64_t max_files = 1;  ///< including the current one, at least 1
};

/// Writes the log of one container. There is one process with a Writer per container, so it buffers
/// only the beginning of a line, and otherwise works on the stack. When the disk is full, entries
/// are lost: a partly written entry is removed again.
class Writer {
 public:
  /// Opens or creates the log in `directory`, and cuts off a partial entry of a writer that was
  /// killed.  Errors: io.
  static Result<Writer> open(const sys::Fd& directory, Settings settings);

  /// The number of bytes, at most `most`, to pass to the next add(), so that it ends at a block
  /// boundary of the file: writing whole blocks takes a third less kernel time.
  size_t best_piece(size_t most) const;
  /// Adds the bytes of one read from a stream, at most kMaxFrame.
  void add(Stream stream, std::string_view bytes);
  /// Call when the container has ended: writes the rest of both streams, which has no newline.
  void finish();

 private:
  void add_json(Stream stream, std::string_view bytes);
  void add_local(Stream stream, std::string_view bytes);
  void write_frame(const Frame& frame, std::string_view bytes);
  void append(std::string_view head, std::string_view bytes = {});
  bool is_full(uint64_t more) const;
  void rotate();
  Result<void> try_to_rotate();
  Result<void> begin_file();

  Settings settings_;
  sys::Fd directory_;
  sys::Fd file_;
  uint64_t size_ = 0;       ///< of file_
  uint64_t rotate_at_ = 0;  ///< 0: never
  LocalKey key_;
  LineCutter out_;
  LineCutter error_;
};

}  // namespace berth::logs
