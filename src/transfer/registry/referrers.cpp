// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/referrers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "transfer/work/base64.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kCreated = "org.opencontainers.image.created";
constexpr std::string_view kEmptyType = "application/vnd.oci.empty.v1+json";
constexpr std::string_view kEmptyBlob = "{}";
/// The limits of embedded content, so that an answer stays below 256 KiB.
constexpr size_t kMaxEmbeddedBlob = size_t{96} << 10, kMaxEmbeddedManifest = size_t{160} << 10;
constexpr int kTagAttempts = 5;

/// A descriptor that may embed its content.
struct Embedded {
  std::string media_type;
  Digest digest;
  uint64_t size = 0;
  std::string artifact_type;
  std::map<std::string, std::string> annotations;
  std::string data;  // base64
};
void fields(auto& v, Embedded& e) {
  v.required("mediaType", e.media_type);
  v.required("digest", e.digest);
  v.required("size", e.size);
  v.optional("artifactType", e.artifact_type);
  v.optional("annotations", e.annotations);
  v.optional("data", e.data);
}

struct ArtifactManifest {
  int schema_version = 2;
  std::string media_type = std::string(oci::media_type::kManifest);
  std::string artifact_type;
  Embedded config;
  std::vector<Embedded> layers;
  std::optional<Embedded> subject;
  std::map<std::string, std::string> annotations;
};
void fields(auto& v, ArtifactManifest& m) {
  v.required("schemaVersion", m.schema_version);
  v.optional("mediaType", m.media_type);
  v.optional("artifactType", m.artifact_type);
  v.required("config", m.config);
  v.required("layers", m.layers);
  v.optional("subject", m.subject);
  v.optional("annotations", m.annotations);
}

struct ReferrerIndex {
  int schema_version = 2;
  std::string media_type = std::string(oci::media_type::kIndex);
  std::vector<Embedded> manifests;
};
void fields(auto& v, ReferrerIndex& i) {
  v.required("schemaVersion", i.schema_version);
  v.optional("mediaType", i.media_type);
  v.required("manifests", i.manifests);
}

/// The tag under which clients keep the list if the registry has no referrers API.
std::string tag_of(const Digest& subject) {
  return "sha256-" + subject.hex();
}

std::string created_of(const Embedded& entry) {
  auto found = entry.annotations.find(std::string(kCreated));
  return found == entry.annotations.end() ? std::string() : found->second;
}

/// The embedded content, if it matches the descriptor; nothing if there is none.
std::optional<std::string> embedded_in(const Embedded& entry) {
  if (entry.data.empty()) return std::nullopt;
  auto bytes = base64_decode(entry.data);
  bool same = bytes && bytes->size() == entry.size && sha256_of(*bytes) == entry.digest;
  return same ? bytes : std::nullopt;
}

Result<std::optional<ReferrerIndex>> index_under_tag(Registry& registry, const Digest& subject) {
  auto document = TRY(registry.find_manifest(tag_of(subject)));
  if (!document) return std::optional<ReferrerIndex>();
  return std::optional<ReferrerIndex>(TRY(json::read<ReferrerIndex>(document->bytes, "referrers")));
}

Result<std::optional<ReferrerIndex>> find_index(Registry& registry, const Digest& subject,
                                                const std::string& type) {
  auto listed = TRY(registry.find_referrers(subject, type));
  if (!listed) return index_under_tag(registry, subject);
  return std::optional<ReferrerIndex>(TRY(json::read<ReferrerIndex>(*listed, "referrers")));
}

const Embedded* newest(const ReferrerIndex& index, const std::string& type) {
  const Embedded* best = nullptr;
  for (const Embedded& entry : index.manifests) {
    if (entry.artifact_type != type || entry.media_type != oci::media_type::kManifest) continue;
    // If the times are equal, the digest decides, so that all clients choose the same artifact.
    bool newer = best == nullptr || created_of(entry) > created_of(*best) ||
                 (created_of(entry) == created_of(*best) && entry.digest > best->digest);
    if (newer) best = &entry;
  }
  return best;
}

ArtifactManifest manifest_of(const Artifact& artifact, const oci::Descriptor& config,
                             const oci::Descriptor& blob) {
  ArtifactManifest manifest;
  manifest.artifact_type = artifact.type;
  manifest.config = {std::string(kEmptyType),  config.digest, config.size, {}, {},
                     base64_encode(kEmptyBlob)};
  Embedded layer{artifact.media_type, blob.digest, blob.size, {}, artifact.annotations, {}};
  if (artifact.blob.size() <= kMaxEmbeddedBlob) layer.data = base64_encode(artifact.blob);
  manifest.layers.push_back(std::move(layer));
  manifest.subject = Embedded{
      artifact.subject.media_type, artifact.subject.digest, artifact.subject.size, {}, {}, {}};
  manifest.annotations[std::string(kCreated)] = artifact.created;
  return manifest;
}

/// Writes the changed list, and checks whether another client has written another list meanwhile. A
/// registry without a referrers API offers no better way.
Result<void> list_under_tag(Registry& registry, const Digest& subject, const Embedded& entry) {
  for (int attempt = 0; attempt < kTagAttempts; ++attempt) {
    auto present = TRY(index_under_tag(registry, subject));
    ReferrerIndex index = present ? *std::move(present) : ReferrerIndex();
    bool listed = std::ranges::any_of(index.manifests,
                                      [&](const Embedded& e) { return e.digest == entry.digest; });
    if (listed && attempt > 0) return {};
    std::erase_if(index.manifests,
                  [&](const Embedded& e) { return e.artifact_type == entry.artifact_type; });
    index.manifests.push_back(entry);
    Document document{json::write(index), std::string(oci::media_type::kIndex), {}};
    document.digest = sha256_of(document.bytes);
    TRY(registry.put_manifest(tag_of(subject), document));
  }
  return make_error(Kind::busy,
                    fmt::format("write the list of referrers '{}': other clients are writing it",
                                tag_of(subject)),
                    "the same again");
}

Result<Artifact> read_artifact(Registry& registry, const Embedded& entry, const Digest& subject,
                               const std::string& type) {
  std::string what = fmt::format("read artifact '{}'", entry.digest.text());
  auto bytes = embedded_in(entry);
  if (!bytes) bytes = TRY(registry.get_manifest(entry.digest.text())).bytes;
  auto manifest = TRY(json::read<ArtifactManifest>(*bytes, what));
  bool right = manifest.subject && manifest.subject->digest == subject &&
               (manifest.artifact_type == type || manifest.config.media_type == type) &&
               manifest.layers.size() == 1;
  if (!right) return make_error(Kind::corrupt, what + ": it is not what the list says");
  const Embedded& layer = manifest.layers.front();
  Artifact artifact;
  artifact.type = type;
  artifact.subject = {manifest.subject->media_type, subject, manifest.subject->size, {}, {}, {}};
  artifact.media_type = layer.media_type;
  artifact.annotations = layer.annotations;
  artifact.created = created_of(entry);
  if (auto brought = embedded_in(layer)) {
    artifact.blob = *std::move(brought);
    return artifact;
  }
  artifact.blob =
      TRY(registry.get_document({layer.media_type, layer.digest, layer.size, {}, {}, {}}));
  return artifact;
}

}  // namespace

Result<Digest> attach(Registry& registry, const Artifact& artifact) {
  oci::Descriptor config = TRY(registry.put_bytes(kEmptyType, kEmptyBlob));
  oci::Descriptor blob = TRY(registry.put_bytes(artifact.media_type, artifact.blob));
  Document document{json::write(manifest_of(artifact, config, blob)),
                    std::string(oci::media_type::kManifest),
                    {}};
  document.digest = sha256_of(document.bytes);
  bool filed = TRY(registry.put_referrer(document));
  if (filed) return document.digest;
  Embedded entry{document.media_type,
                 document.digest,
                 document.bytes.size(),
                 artifact.type,
                 {{std::string(kCreated), artifact.created}},
                 {}};
  if (document.bytes.size() <= kMaxEmbeddedManifest) entry.data = base64_encode(document.bytes);
  TRY(list_under_tag(registry, artifact.subject.digest, entry));
  return document.digest;
}

Result<std::optional<Artifact>> find_artifact(Registry& registry, const Digest& subject,
                                              const std::string& type) {
  auto index = TRY(find_index(registry, subject, type));
  const Embedded* entry = index ? newest(*index, type) : nullptr;
  if (entry == nullptr) return std::optional<Artifact>();
  return std::optional<Artifact>(TRY(read_artifact(registry, *entry, subject, type)));
}

}  // namespace berth::transfer
