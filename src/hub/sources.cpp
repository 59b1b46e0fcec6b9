// SPDX-License-Identifier: Apache-2.0
#include "hub/sources.hpp"

#include "transfer/registry/credentials.hpp"
#include "transfer/registry/variants.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostSources = 256;
constexpr size_t kBufferBytes = size_t{64} << 10;

transfer::HttpOptions http_options(const Access& access) {
  transfer::HttpOptions options;
  if (!access.tls_ca.empty()) options.tls_ca = access.tls_ca;
  options.insecure_registries = access.insecure_registries;
  options.buffer_bytes = kBufferBytes;
  return options;
}

/// The media type of a document, for a registry that does not send it.
std::string type_inside(const std::string& bytes) {
  auto parsed = oci::parse_manifest(bytes, "");
  if (!parsed.ok()) return std::string(oci::media_type::kManifest);
  return std::visit(
      [](const auto& document) {
        bool index = requires {
          document.manifests;
        };
        if (!document.media_type.empty()) return document.media_type;
        return std::string(index ? oci::media_type::kIndex : oci::media_type::kManifest);
      },
      *parsed);
}

}  // namespace

Result<Held> Source::get(const std::string& tag_or_digest) {
  Held held = cache_.find(key_ + "@" + tag_or_digest);  // a tag is never a key
  if (held.bytes) return held;
  transfer::Document document = TRY(registry_.get_manifest(tag_or_digest));
  held.digest = document.digest.text();
  held.media_type =
      document.media_type.empty() ? type_inside(document.bytes) : std::move(document.media_type);
  held.bytes = std::make_shared<const std::string>(std::move(document.bytes));
  return cache_.put(key_ + "@" + held.digest, held);
}

Result<transfer::Document> Source::get_described(const oci::Descriptor& descriptor) {
  Held held = TRY(get(descriptor.digest.text()));
  transfer::Document document{*held.bytes, held.media_type, descriptor.digest};
  TRY(transfer::check_described(document, descriptor));
  return document;
}

Sources::Sources(const Config& config, const transfer::Cancel& cancel, Log& log)
    : config_(config),
      cancel_(cancel),
      log_(log),
      http_(http_options(config.access), cancel),
      cache_(size_t{config.limits.cache_mib} << 20) {}

Result<std::shared_ptr<Source>> Sources::get(const Place& place) {
  const std::string key = fmt::format("{}/{}", place.upstream, place.repository);
  if (auto source = find(key)) return source;
  // Opened without the lock, so that other repositories do not wait for this registry.
  auto source = TRY(open(place, key));
  std::lock_guard lock(mutex_);
  auto other = places_.find(key);
  if (other != places_.end()) return other->second->second;
  entries_.emplace_front(key, source);
  places_[key] = entries_.begin();
  if (entries_.size() > kMostSources) {
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return source;
}

std::shared_ptr<Source> Sources::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto entry = places_.find(key);
  if (entry == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry->second);
  return entry->second->second;
}

Result<std::shared_ptr<Source>> Sources::open(const Place& place, const std::string& key) {
  const std::string& name = config_.upstream[place.upstream].registry;
  const auto& given = config_.access.auth_files;
  auto credential = TRY(transfer::find_credential(
      given.empty() ? transfer::default_auth_files() : given, name, place.repository, log_));
  transfer::Registry registry =
      TRY(transfer::Registry::make(http_, cancel_, name, place.repository, std::move(credential),
                                   [this](const std::string& text) { log_.debug(text); }));
  registry.try_once();
  TRY(registry.connect());
  return std::make_shared<Source>(std::move(registry), key, cache_);
}

size_t DocumentCache::cost(const Entries::value_type& entry) {
  constexpr size_t kOverhead = 256;  // bytes for the list, the map and the strings
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
