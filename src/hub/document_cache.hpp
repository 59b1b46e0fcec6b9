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

/// A manifest or index that users may hold longer than the cache.
struct Held {
  std::shared_ptr<const std::string> bytes;
  std::string media_type;
  std::string digest;
};

/// Manifests by repository and digest; drops the least recently used first. Thread-safe.
class DocumentCache {
 public:
  explicit DocumentCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null bytes if it is missing.
  Held find(const std::string& key);
  /// Returns the document, or the cached equal one, so that both share memory. Does not cache one
  /// larger than a quarter of the cache.
  Held put(const std::string& key, Held document);

  size_t bytes() const;

 private:
  using Entries = std::list<std::pair<std::string, Held>>;  // the most recently used first
  static size_t cost(const Entries::value_type& entry);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  Entries entries_;
  std::map<std::string, Entries::iterator> places_;
};

}  // namespace berth::hub
