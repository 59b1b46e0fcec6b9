// SPDX-License-Identifier: Apache-2.0
#include "hub/client_limits.hpp"

namespace berth::hub {

Welcome Guests::add(const Address& address) {
  size_t& count = of_one_[neighbourhood(address)];
  if (count < most_of_one_) {
    ++count;
    ++served_;
    return Welcome::served;
  }
  if (refused_ >= most_refused_) return Welcome::closed;
  ++refused_;
  return Welcome::refused;
}

void Guests::remove(const Address& address, Welcome welcome) {
  if (welcome == Welcome::refused) {
    --refused_;
    return;
  }
  --served_;
  auto entry = of_one_.find(neighbourhood(address));
  if (--entry->second == 0) of_one_.erase(entry);
}

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
    task = nullptr;  // destroys what the task holds before the next task begins
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

bool Outgoing::add(const Bytes& bytes) {
  std::lock_guard lock(mutex_);
  size_t& takers = takers_[bytes.get()];
  if (takers == 0 && held_ + bytes->size() > most_) {
    takers_.erase(bytes.get());
    return false;
  }
  if (takers++ == 0) held_ += bytes->size();
  return true;
}

void Outgoing::remove(const Bytes& bytes) {
  std::lock_guard lock(mutex_);
  auto entry = takers_.find(bytes.get());
  if (--entry->second > 0) return;
  held_ -= bytes->size();
  takers_.erase(entry);
}

size_t Outgoing::held() const {
  std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace berth::hub
