// SPDX-License-Identifier: Apache-2.0
// Writes large files: through the page cache, or past it where that is faster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Writes files from front to back in pieces; gathers contiguous bytes.
class PieceWriter {
 public:
  static constexpr size_t kPiece = size_t{2} << 20;
  /// An alignment of addresses, lengths and memory that every current file system and disk accepts.
  static constexpr size_t kAlignment = 4096;

  enum class Cache {
    through,
    /// A thread writes whole pieces past the page cache (O_DIRECT, open(2)), which saves a copy by
    /// the processor. Pieces for which the disk is too slow, pieces on file systems without
    /// support, and all other bytes go through the cache.
    past,
  };
  /// Memory: at most four pieces with Cache::past, else one.
  explicit PieceWriter(Cache cache = Cache::through);
  PieceWriter(PieceWriter&&) noexcept;
  PieceWriter& operator=(PieceWriter&&) noexcept;
  ~PieceWriter();

  /// Directs the following writes to `file`, a regular file without O_APPEND that has to stay open
  /// until flush(), or until this object is no longer used. `name` is for errors.
  void begin(const Fd& file, std::string name);
  /// Fills a gap of less than kAlignment bytes with zeros, leaves a larger one as a hole.
  /// Errors: io, also of earlier writes.
  Result<void> write(uint64_t offset, std::string_view bytes);
  /// Waits until all bytes are in the file. Errors: io.
  Result<void> flush();
  /// Reports all bytes and their offsets to `observe`, in the order of writing.
  void observe(std::function<void(uint64_t offset, std::string_view bytes)> observer) {
    observer_ = std::move(observer);
  }
  /// Reads back bytes that this or another writer wrote, as many as exist.  Errors: io.
  Result<std::string> read(uint64_t offset, size_t length);

 private:
  struct Free {
    void operator()(char* bytes) const;
  };
  using Bytes = std::unique_ptr<char, Free>;
  class Target;
  struct Behind;

  char* buffer();
  uint64_t end() const { return start_ + size_; }
  Result<void> append(std::string_view bytes);
  Result<void> hand_over();
  Result<void> write_out();
  Result<void> fill_gap(uint64_t offset);
  Result<std::shared_ptr<Target>> target();

  Cache cache_;
  const Fd* file_ = nullptr;
  std::string name_;
  Bytes bytes_;  ///< kPiece bytes, from `start_` on
  uint64_t start_ = 0;
  size_t size_ = 0;  ///< the size of the unwritten part
  std::shared_ptr<Target> target_;
  std::unique_ptr<Behind> behind_;
  std::function<void(uint64_t, std::string_view)> observer_;
};

}  // namespace berth::sys
