// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

/// The limit of nested indexes, and so of requests for one name.
constexpr size_t kMaxInner = 8;

Result<std::vector<oci::Descriptor>> entries_of(const oci::Index& index,
                                                const std::optional<oci::Platform>& wish) {
  if (wish) return oci::matching_entries(index, *wish);
  std::vector<oci::Descriptor> images;
  for (const oci::Descriptor& entry : index.manifests) {
    bool image = oci::is_manifest_type(entry.media_type) || oci::is_index_type(entry.media_type);
    // Attestations are for no machine.
    bool for_none = entry.platform && entry.platform->os == "unknown";
    if (image && !for_none) images.push_back(entry);
  }
  return images;
}

}  // namespace

Result<void> check_described(Document& document, const oci::Descriptor& descriptor) {
  if (document.bytes.size() != descriptor.size) {
    return make_error(Kind::corrupt, fmt::format("read manifest '{}': {} bytes instead of {}",
                                                 descriptor.digest.text(), document.bytes.size(),
                                                 descriptor.size));
  }
  if (!document.media_type.empty() && document.media_type != descriptor.media_type) {
    return make_error(Kind::corrupt,
                      fmt::format("read manifest '{}': the registry says '{}', the index '{}'",
                                  descriptor.digest.text(), escape_controls(document.media_type),
                                  escape_controls(descriptor.media_type)));
  }
  document.media_type = descriptor.media_type;
  return {};
}

Result<Document> get_described(Registry& registry, const oci::Descriptor& descriptor) {
  Document document = TRY(registry.get_manifest(descriptor.digest.text()));
  TRY(check_described(document, descriptor));
  return document;
}

Result<Variants> list_variants(Registry& registry, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish) {
  return list_variants(
      [&registry](const oci::Descriptor& inner) { return get_described(registry, inner); }, outer,
      wish);
}

Result<Variants> list_variants(const Fetch& fetch, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish) {
  Variants variants;
  std::set<std::string> seen;
  for (const oci::Descriptor& entry : TRY(entries_of(outer, wish))) {
    if (!oci::is_index_type(entry.media_type)) {
      variants.entries.push_back({entry, std::nullopt});
      continue;
    }
    if (!seen.insert(entry.digest.text()).second) continue;
    if (variants.inner.size() == kMaxInner) {
      return make_error(Kind::unsupported,
                        fmt::format("read the index: more than {} indexes in it", kMaxInner));
    }
    Document document = TRY(fetch(entry));
    auto parsed = TRY(oci::parse_manifest(document.bytes, document.media_type));
    const auto* index = std::get_if<oci::Index>(&parsed);
    if (index == nullptr) {
      return make_error(Kind::corrupt,
                        fmt::format("read index '{}': it is a manifest", document.digest.text()));
    }
    for (const oci::Descriptor& inner : TRY(entries_of(*index, wish))) {
      if (oci::is_index_type(inner.media_type)) {
        return make_error(Kind::unsupported,
                          fmt::format("read index '{}': indexes inside indexes inside indexes",
                                      document.digest.text()));
      }
      variants.entries.push_back({inner, variants.inner.size()});
    }
    variants.inner.push_back(std::move(document));
  }
  if (variants.entries.size() > oci::kMaxIndexEntries) {
    return make_error(Kind::corrupt, fmt::format("read the index: more than {} entries in all",
                                                 oci::kMaxIndexEntries));
  }
  return variants;
}

match::Candidate candidate_of(const oci::Descriptor& entry, const oci::ImageConfig* config,
                              const std::optional<image::PublishedFacts>& published) {
  match::Candidate candidate;
  candidate.descriptor = entry;
  candidate.declared = match::read_declared(entry);
  const image::PublishedImage* known = published ? published->of(entry.digest) : nullptr;
  if (known != nullptr) {
    candidate.found = known->found;
    candidate.runs = known->runs;
    candidate.runs_believed = !published->signer.empty();
  }
  if (config == nullptr && known == nullptr) return candidate;
  // Annotations can be changed without a new image, so they have precedence.
  match::Declared of_config = match::read_declared(config ? config->config : known->config);
  candidate.declared = match::merge(std::move(of_config), candidate.declared);
  if (candidate.descriptor.platform) return candidate;
  candidate.descriptor.platform =
      config ? oci::Platform{config->architecture, config->os, {}, {}, config->variant}
             : known->platform;
  return candidate;
}

}  // namespace berth::transfer
