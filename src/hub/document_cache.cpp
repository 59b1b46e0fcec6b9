// SPDX-License-Identifier: Apache-2.0
#include "hub/document_cache.hpp"

namespace berth::hub {

size_t DocumentCache::cost(const Entries::value_type& entry) {
  constexpr size_t kOverhead = 256;  // of the list, the map and the strings
  return entry.second.bytes->size() + 2 * entry.first.size() + kOverhead;
}

Held DocumentCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto place = places_.find(key);
  if (place == places_.end()) return {};
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->second;
}

Held DocumentCache::put(const std::string& key, Held document) {
  const Entries::value_type entry{key, std::move(document)};
  const size_t size = cost(entry);
  if (size > max_bytes_ / 4) return entry.second;
  std::lock_guard lock(mutex_);
  auto place = places_.find(key);
  if (place != places_.end()) return place->second->second;
  entries_.push_front(entry);
  places_[key] = entries_.begin();
  bytes_ += size;
  while (bytes_ > max_bytes_) {
    bytes_ -= cost(entries_.back());
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entry.second;
}

size_t DocumentCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace berth::hub
