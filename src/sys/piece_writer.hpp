// SPDX-License-Identifier: Apache-2.0
// Large amounts of bytes into files: through the page cache, or past it where that is faster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// How fast the two ways have lately been on this machine; any thread may use it.
///
/// Past the cache (O_DIRECT, open(2)) the kernel copies nothing and takes no memory from others,
/// but the disk is waited for. So this way is taken where the disk keeps up, four times slower
/// being good enough; now and then the other is tried, for a cache that is full of unwritten pages
/// becomes slow.
class WritePace {
 public:
  enum class Way { cached, direct };

  Way next();
  void tell(Way way, uint64_t bytes, std::chrono::nanoseconds taken);
  /// The file system cannot, so nobody tries again.
  void forbid_direct();

 private:
  std::mutex mutex_;
  uint64_t turn_ = 0;
  double cached_ = 0;  ///< nanoseconds for a byte; 0: not known
  double direct_ = 0;
  bool forbidden_ = false;
};

/// Writes files front to back in pieces: what follows what came before is gathered.
class PieceWriter {
 public:
  static constexpr size_t kPiece = size_t{2} << 20;
  /// What every file system and disk of today is content with, for addresses, lengths and memory.
  static constexpr size_t kAlignment = 4096;

  /// Without a pace all goes through the cache. The pace outlives this.
  explicit PieceWriter(WritePace* pace = nullptr) : pace_(pace) {}

  /// What is written from now on goes to `file`, a regular file without O_APPEND that stays open
  /// until flush(). `name` is for errors.
  void begin(const Fd& file, std::string name);
  /// A gap of less than kAlignment bytes becomes zeros, a larger one stays as it is in the file.
  /// Errors: io.
  Result<void> write(uint64_t offset, std::string_view bytes);
  /// Errors: io.
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
  char* buffer();
  uint64_t end() const { return start_ + size_; }
  Result<void> append(std::string_view bytes);
  Result<void> write_out();
  Result<size_t> write_direct(size_t size);

  WritePace* pace_;
  const Fd* file_ = nullptr;
  std::string name_;
  std::unique_ptr<char, Free> bytes_;  ///< kPiece of them, from `start_` on
  uint64_t start_ = 0;
  size_t size_ = 0;  ///< of what is not written yet
  std::function<void(uint64_t, std::string_view)> observer_;
};

}  // namespace berth::sys
