// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/published_facts.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/registry.hpp"

namespace berth::transfer {

/// The images of an index and of its nested indexes, flat.
struct Variants {
  struct Entry {
    oci::Descriptor descriptor;
    std::optional<size_t> inner;  ///< index into `inner`, if the entry is in a nested index
  };
  std::vector<Entry> entries;
  std::vector<Document> inner;  ///< nested indexes, each once
};

/// A nested index is fetched if its platform fits `wish` or if it has no platform; without `wish`
/// all nested indexes are fetched. Deeper nesting is refused.
/// Errors: not_found (no entry fits), unsupported (nested deeper, or more than 8 of them), corrupt.
Result<Variants> list_variants(Registry& registry, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish);

/// The same for a caller that caches documents: `fetch` replaces get_described().
using Fetch = std::function<Result<Document>(const oci::Descriptor&)>;
Result<Variants> list_variants(const Fetch& fetch, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish);

/// Fetches a descriptor's document, checked against the whole descriptor.
Result<Document> get_described(Registry& registry, const oci::Descriptor& descriptor);

/// Does only the check, for bytes that have the descriptor's digest; sets the document's media
/// type.
/// Errors: corrupt.
Result<void> check_described(Document& document, const oci::Descriptor& descriptor);

/// The declarations about an entry, including its config if known, and the published facts about
/// its files.
match::Candidate candidate_of(const oci::Descriptor& entry, const oci::ImageConfig* config,
                              const std::optional<image::PublishedFacts>& published);

}  // namespace berth::transfer
