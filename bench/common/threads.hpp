// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace berth::bench {

/// Threads that wait for work, the calling one among them.
class Threads {
 public:
  /// A share of [0, count): those from `first` up to but without `last`.
  using Part = std::function<void(int64_t first, int64_t last)>;

  /// Shape: 1 or more, the caller's included.
  explicit Threads(size_t count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  size_t count() const { return workers_.size() + 1; }

  /// Calls `part` on every thread at once, each with its share of [0, count), and returns when all
  /// have returned. Shares begin at multiples of `step`, so what is less than one is the caller's.
  void share(int64_t count, int64_t step, const Part& part);

 private:
  void work(size_t number);
  void take_share(size_t number) const;

  std::vector<std::thread> workers_;
  std::barrier<> turn_;
  const Part* part_ = nullptr;  // nothing: the end
  int64_t count_ = 0;
  int64_t share_ = 0;
};

}  // namespace berth::bench
