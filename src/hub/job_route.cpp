// SPDX-License-Identifier: Apache-2.0
#include "hub/job_route.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostKnownJobs = 4096;
constexpr size_t kMostType = 255;

/// "artifactType=application%2Fvnd…" in our own client's form; nothing for another query.
std::optional<std::string> artifact_type(std::string_view query) {
  constexpr std::string_view kKey = "artifactType=";
  if (query.empty()) return "";
  if (!query.starts_with(kKey) || query.size() > kMostType) return std::nullopt;
  query.remove_prefix(kKey.size());
  std::string out;
  for (size_t i = 0; i < query.size(); ++i) {
    char c = query[i];
    if (c == '%') {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      if (i + 2 >= query.size()) return std::nullopt;
      size_t high = kDigits.find(query[i + 1]);
      size_t low = kDigits.find(query[i + 2]);
      if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 std::string_view("!#$&-^_.+/").find(c) != std::string_view::npos;
    if (!plain) return std::nullopt;
    out += c;
  }
  return out;
}

}  // namespace

std::optional<ReferrersRoute> referrers_route(std::string_view method, std::string_view target) {
  constexpr std::string_view kKind = "/referrers/";
  constexpr std::string_view kRoot = "/v2/";
  if (method != "GET" || !target.starts_with(kRoot)) return std::nullopt;
  size_t question = target.find('?');
  std::string_view path = target.substr(0, question).substr(kRoot.size());
  size_t kind = path.rfind(kKind);
  if (kind == path.npos || kind == 0) return std::nullopt;
  auto subject = Digest::parse(path.substr(kind + kKind.size()));
  auto type = artifact_type(question == target.npos ? "" : target.substr(question + 1));
  if (!subject.ok() || !type) return std::nullopt;
  return ReferrersRoute{std::string(path.substr(0, kind)), std::move(*subject), std::move(*type)};
}

std::optional<ByteRange> range_of(std::string_view value, uint64_t size) {
  constexpr size_t kUnit = 6;  // "bytes="
  std::string range = plain_range(value);
  if (range.empty()) return ByteRange{0, size};
  size_t dash = range.find('-');
  uint64_t begin = parse_u64(range.substr(kUnit, dash - kUnit)).value_or(size);
  uint64_t last = parse_u64(range.substr(dash + 1)).value_or(size);
  if (begin >= size || last < begin) return std::nullopt;
  return ByteRange{begin, std::min(last, size - 1) + 1};
}

bool Belongings::has_manifest(const Digest& digest) const {
  std::lock_guard lock(mutex_);
  return manifests_.contains(digest);
}

bool Belongings::has_manifest(std::string_view tag_or_digest) const {
  constexpr std::string_view kReferrers = "sha256-";
  constexpr size_t kDigits = 64;
  if (tag_or_digest == root_) return true;
  std::string text(tag_or_digest);
  // Also with the suffix of signatures: "sha256-HEX.sig".
  if (text.starts_with(kReferrers)) {
    text = "sha256:" + text.substr(kReferrers.size(), kDigits);
  }
  auto digest = Digest::parse(text);
  return digest.ok() && has_manifest(*digest);
}

std::optional<oci::Descriptor> Belongings::blob(const Digest& digest) const {
  std::lock_guard lock(mutex_);
  auto known = blobs_.find(digest);
  if (known == blobs_.end()) return std::nullopt;
  return known->second;
}

void Belongings::learn(const Digest& digest, std::string_view bytes, std::string_view media_type) {
  auto parsed = oci::parse_manifest(bytes, media_type);
  std::lock_guard lock(mutex_);
  if (manifests_.size() < kMostKnownJobs) manifests_.insert(digest);
  if (!parsed.ok()) return;
  if (const auto* index = std::get_if<oci::Index>(&*parsed)) {
    for (const oci::Descriptor& entry : index->manifests) {
      if (manifests_.size() < kMostKnownJobs) manifests_.insert(entry.digest);
    }
    return;
  }
  const auto& manifest = std::get<oci::Manifest>(*parsed);
  auto add = [&](const oci::Descriptor& blob) {
    if (blobs_.size() < kMostKnownJobs) blobs_.emplace(blob.digest, blob);
  };
  add(manifest.config);
  for (const oci::Descriptor& layer : manifest.layers) add(layer);
}

}  // namespace berth::hub
