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

/// Writes the log of one container. It is part of a process that exists once per container: it
/// keeps no buffer but the beginning of a line, and works on the stack. A full disk loses entries:
/// one that does not fit is removed again, so that no half of it stays.
class Writer {
 public:
  /// Opens or makes the log in `directory`; cuts off a partial entry of a killed writer.  Errors:
  /// io.
  static Result<Writer> open(const sys::Fd& directory, Settings settings);

  /// The number of bytes, at most `most`, with which the next add() ends at a block boundary of the
  /// file: writing whole blocks takes a third less kernel time.
  size_t best_piece(size_t most) const;
  /// Adds the bytes of one read of a stream; at most kMaxFrame.
  void add(Stream stream, std::string_view bytes);
  /// The container has ended: writes the rest of its streams, which has no newline.
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
