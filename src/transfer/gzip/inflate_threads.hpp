// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace berth::transfer {

/// Distributes processors and memory among the layers that are inflated at once. A layer gets
/// several threads only if it is large and enough processors are free: otherwise they would slow
/// down the threads that hash and write. That this makes a whole pull faster has not been measured
/// on a machine with many processors; BERTH_INFLATE_THREADS=1 turns it off (docs/decisions/0151).
class InflateThreads {
 public:
  static constexpr uint64_t kLargeBlob = uint64_t{64} << 20;
  static constexpr size_t kBusy = 3;   ///< processors for hashing and writing besides inflating
  static constexpr size_t kLeast = 3;  ///< the fewest threads that pay: twice as fast
  static constexpr size_t kMost = 4;   ///< with more, the SHA-256 of the output is the bottleneck

  /// `processors`: spare_processors(). `memory`: bytes for all of them. `forced`: the value of
  /// BERTH_INFLATE_THREADS, the threads of every layer; empty if unset.  Errors: usage (of
  /// `forced`).
  static Result<InflateThreads> make(size_t processors, uint64_t memory, std::string_view forced);

  /// Threads for a blob of `size` bytes: 1 if more do not pay.
  size_t take(uint64_t size);
  void give_back(size_t threads);

 private:
  size_t free_ = 0;
  uint64_t memory_ = 0;
  std::optional<size_t> forced_;
};

/// The processors that this process may use (sys::usable_processors()); none without SHA-256
/// instructions, because hashing is then slower than a single inflating thread.
size_t spare_processors();

}  // namespace berth::transfer
