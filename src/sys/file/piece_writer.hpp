// SPDX-License-Identifier: Apache-2.0
// Large amounts of bytes into files: through the page cache, or past it where that is faster.
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

/// Writes files front to back in pieces: what follows what came before is gathered.
class PieceWriter {
 public:
  static constexpr size_t kPiece = size_t{2} << 20;
  /// What every file system and disk of today is content with, for addresses, lengths and memory.
  static constexpr size_t kAlignment = 4096;

  enum class Cache {
    through,
    /// A thread writes whole pieces past the page cache (O_DIRECT, open(2)), so that no processor
    /// copies them. Pieces that the disk does not keep up with, and those on file systems that
    /// cannot, go through the cache, as everything else does.
    past,
  };
  /// In memory are, past the cache, four pieces at most, else one.
  explicit PieceWriter(Cache cache = Cache::through);
  PieceWriter(PieceWriter&&) noexcept;
  PieceWriter& operator=(PieceWriter&&) noexcept;
  ~PieceWriter();

  /// What is written from now on goes to `file`, a regular file without O_APPEND that stays open
  /// until flush(), or as long as this is asked for anything. `name` is for errors.
  void begin(const Fd& file, std::string name);
  /// A gap of less than kAlignment bytes becomes zeros, a larger one stays as it is in the file.
  /// Errors: io, also of what was given before.
  Result<void> write(uint64_t offset, std::string_view bytes);
  /// All is in the file.  Errors: io.
  Result<void> flush();
  /// Is told of all bytes and where they go, in the order of their writing.
  void observe(std::function<void(uint64_t offset, std::string_view bytes)> observer) {
    observer_ = std::move(observer);
  }
  /// Reads back what was written, by this one or another, as much as is there.  Errors: io.
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
  Bytes bytes_;  ///< kPiece of them, from `start_` on
  uint64_t start_ = 0;
  size_t size_ = 0;  ///< of what is not written yet
  std::shared_ptr<Target> target_;
  std::unique_ptr<Behind> behind_;
  std::function<void(uint64_t, std::string_view)> observer_;
};

}  // namespace berth::sys
