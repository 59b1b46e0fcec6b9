// SPDX-License-Identifier: Apache-2.0
// The registries behind a hub.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "hub/config/config.hpp"
#include "hub/route.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/registry/registry.hpp"

namespace berth::hub {

/// A manifest or index. Its users may keep it after the cache has dropped it.
struct Held {
  std::shared_ptr<const std::string> bytes;
  std::string media_type;
  std::string digest;
};

/// Manifests by repository and digest; drops the least recently used first. Thread-safe.
class DocumentCache {
 public:
  explicit DocumentCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// With null bytes if the cache does not have it.
  Held find(const std::string& key);
  /// Caches `document` and returns it, or returns the equal document that is cached already, so
  /// that its users share memory. Does not cache a document larger than a quarter of the cache.
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

/// One repository of one registry. Thread-safe.
class Source {
 public:
  Source(transfer::Registry registry, std::string key, DocumentCache& cache)
      : registry_(std::move(registry)), key_(std::move(key)), cache_(cache) {}

  /// Gets a document by tag (always from the registry) or by digest (from the cache if possible).
  /// Its digest has been verified.
  /// Errors: those of transfer::Registry::get_manifest().
  Result<Held> get(const std::string& tag_or_digest);

  /// Fetches the document of a descriptor, and checks it against all members of the descriptor.
  /// Errors: those of transfer::get_described().
  Result<transfer::Document> get_described(const oci::Descriptor& descriptor);

  transfer::Registry& registry() { return registry_; }
  const std::string& key() const { return key_; }  ///< unique to this repository

 private:
  transfer::Registry registry_;
  std::string key_;
  DocumentCache& cache_;
};

/// The recently used repositories, with the tokens for their registries. Thread-safe.
class Sources {
 public:
  /// The arguments have to outlive this object.
  Sources(const Config& config, const transfer::Cancel& cancel, Log& log);

  /// Reads credentials at the first request for a repository.
  /// Errors: those of transfer::Registry::make() and connect().
  Result<std::shared_ptr<Source>> get(const Place& place);

  const transfer::Http& http() const { return http_; }

 private:
  using Entries = std::list<std::pair<std::string, std::shared_ptr<Source>>>;

  Result<std::shared_ptr<Source>> open(const Place& place, const std::string& key);
  std::shared_ptr<Source> find(const std::string& key);

  const Config& config_;
  const transfer::Cancel& cancel_;
  Log& log_;
  transfer::Http http_;
  DocumentCache cache_;
  std::mutex mutex_;
  Entries entries_;  // the most recently used first
  std::map<std::string, Entries::iterator> places_;
};

}  // namespace berth::hub
