// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace berth::transfer {

/// Shares processors and memory out to the layers that are inflated at once. Many threads are given
/// to a layer only where it is large and enough processors are free: else they would take from
/// those who hash and write. What that gains a whole pull has not been seen on a machine with many
/// processors; BERTH_INFLATE_THREADS=1 switches it off (docs/decisions/0151).
class InflateThreads {
 public:
  static constexpr uint64_t kLargeBlob = uint64_t{64} << 20;
  static constexpr size_t kBusy = 3;   ///< processors that hash and write beside who inflates
  static constexpr size_t kLeast = 3;  ///< threads that are worth what they cost: twice as fast
  static constexpr size_t kMost = 4;   ///< the SHA-256 of what comes out is slower than more

  /// `processors`: those of spare_processors(). `memory`: bytes for all of them. `forced`: what
  /// BERTH_INFLATE_THREADS says, so many threads for every layer; empty where it does not.  Errors:
  /// usage (of `forced`).
  static Result<InflateThreads> make(size_t processors, uint64_t memory, std::string_view forced);

  /// Threads for a blob of `size` bytes: 1 where it does not pay.
  size_t take(uint64_t size);
  void give_back(size_t threads);

 private:
  size_t free_ = 0;
  uint64_t memory_ = 0;
  std::optional<size_t> forced_;
};

/// The processors that this process may use (sys::usable_processors()); none where SHA-256 has no
/// instructions of its own, because it is then slower than a single thread that inflates.
size_t spare_processors();

}  // namespace berth::transfer
