// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/published_facts.hpp"
#include "match/choose.hpp"
#include "match/verdict.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/registry.hpp"

namespace berth::transfer {

/// The images of an index and of those inside it, flat.
struct Variants {
  struct Entry {
    oci::Descriptor descriptor;
    std::optional<size_t> inner;  ///< of `inner`, where the entry is not the outer index's own
  };
  std::vector<Entry> entries;
  std::vector<Document> inner;  ///< indexes inside the outer one, each once
};

/// An index inside an index is fetched when its own platform fits `wish`, or it says none; without
/// a wish all are. Indexes inside those are refused.
/// Errors: not_found (no entry fits), unsupported (nested deeper, or more than 8 of them), corrupt.
Result<Variants> list_variants(Registry& registry, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish);

/// The same, of one who keeps documents: `fetch` gives what get_described() would.
using Fetch = std::function<Result<Document>(const oci::Descriptor&)>;
Result<Variants> list_variants(const Fetch& fetch, const oci::Index& outer,
                               const std::optional<oci::Platform>& wish);

/// What a descriptor names, checked against all that it says.
Result<Document> get_described(Registry& registry, const oci::Descriptor& descriptor);

/// That check alone, of bytes that have the descriptor's digest; the document takes its media type.
/// Errors: corrupt.
Result<void> check_described(Document& document, const oci::Descriptor& descriptor);

/// What is declared about an entry, its config included where that is known, and what is published
/// about its files.
match::Candidate candidate_of(const oci::Descriptor& entry, const oci::ImageConfig* config,
                              const std::optional<image::PublishedFacts>& published);

}  // namespace berth::transfer
