// SPDX-License-Identifier: Apache-2.0
#include "hub/outgoing.hpp"

namespace berth::hub {

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
