// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transfer/registry/registry.hpp"

namespace berth::hub {

/// A manifest or index that others may still hold when it has left the cache.
struct Held {
  std::shared_ptr<const std::string> bytes;
  std::string media_type;
  std::string digest;
};

/// Manifests by repository and digest, the least recently used of them dropped first. Any thread.
class DocumentCache {
 public:
  explicit DocumentCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null bytes where it is not there.
  Held find(const std::string& key);
  /// Gives the document back, or the one that is there already, so that both are one. One above a
  /// quarter of the whole is not kept.
  Held put(const std::string& key, Held document);

  size_t bytes() const;

 private:
  using Entries = std::list<std::pair<std::string, Held>>;  // the last used first
  static size_t cost(const Entries::value_type& entry);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  Entries entries_;
  std::map<std::string, Entries::iterator> places_;
};

}  // namespace berth::hub
