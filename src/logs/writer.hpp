// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "logs/entry.hpp"
#include "logs/line_cutter.hpp"
#include "logs/local.hpp"
#include "sys/fd.hpp"

namespace berth::logs {

struct Settings {
  Format format = Format::json_file;
  uint64_t max_bytes = 0;  ///< a file of this size is put aside; 0: never
  uint64_t max_files = 1;  ///< all together, at least 1
};

/// Writes the log of one container. It lives in a process of which there is one for each container:
/// it keeps no buffer but the beginning of a line, and works on the stack. A full disk costs
/// entries: one that does not fit is taken away again, so that no half of it stays.
class Writer {
 public:
  /// Opens or makes the log in `directory`; what a writer that was killed has left of an entry is
  /// cut off.  Errors: io.
  static Result<Writer> open(const sys::Fd& directory, Settings settings);

  /// How many bytes, at most `most`, let the next add() end where a block of the file ends: writing
  /// whole blocks takes a third less of the kernel's time.
  size_t best_piece(size_t most) const;
  /// What one read of a stream gave, in the order it came; at most kMaxFrame bytes.
  void add(Stream stream, std::string_view bytes);
  /// The container has ended: what is left of its streams has no newline.
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
