// SPDX-License-Identifier: Apache-2.0
#include "bench/common/threads.hpp"

#include <algorithm>
#include <cstddef>

namespace berth::bench {

Threads::Threads(size_t count) : turn_(static_cast<std::ptrdiff_t>(count)) {
  for (size_t number = 1; number < count; ++number) {
    workers_.emplace_back([this, number] { work(number); });
  }
}

Threads::~Threads() {
  part_ = nullptr;
  turn_.arrive_and_wait();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::share(int64_t count, int64_t step, const Part& part) {
  int64_t steps = (count + step - 1) / step;
  auto threads = static_cast<int64_t>(this->count());
  if (steps <= 1 || threads == 1) return part(0, count);
  part_ = &part;
  count_ = count;
  share_ = (steps + threads - 1) / threads * step;
  turn_.arrive_and_wait();  // all begin
  take_share(0);
  turn_.arrive_and_wait();  // all have ended
}

void Threads::work(size_t number) {
  while (true) {
    turn_.arrive_and_wait();
    if (part_ == nullptr) return;
    take_share(number);
    turn_.arrive_and_wait();
  }
}

void Threads::take_share(size_t number) const {
  int64_t first = std::min(count_, static_cast<int64_t>(number) * share_);
  int64_t last = std::min(count_, first + share_);
  if (first < last) (*part_)(first, last);
}

}  // namespace berth::bench
