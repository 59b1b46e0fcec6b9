// SPDX-License-Identifier: Apache-2.0
#include "hub/turns.hpp"

namespace berth::hub {

void Turns::add(const Address& address, Task task) {
  const Address key = neighbourhood(address);
  {
    std::lock_guard lock(mutex_);
    OfOne& one = addresses_[key];
    if (one.running == most_of_one_) return one.waiting.push_back(std::move(task));
    ++one.running;
  }
  start(key, std::move(task));
}

void Turns::start(const Address& key, Task task) {
  start_([this, key, task = std::move(task)]() mutable {
    task();
    task = nullptr;  // destroys what it holds before the next one begins
    ended(key);
  });
}

void Turns::ended(const Address& key) {
  Task next;
  {
    std::lock_guard lock(mutex_);
    auto entry = addresses_.find(key);
    OfOne& one = entry->second;
    if (one.waiting.empty()) {
      if (--one.running == 0) addresses_.erase(entry);
      return;
    }
    next = std::move(one.waiting.front());
    one.waiting.pop_front();
  }
  start(key, std::move(next));
}

}  // namespace berth::hub
