// SPDX-License-Identifier: Apache-2.0
// The entry of an index for a node, as `berth match` names it. Pure but for what is asked of
// `Beside`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/published_facts.hpp"
#include "match/choose.hpp"
#include "node/profile.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/variants.hpp"

namespace berth::hub {

struct Choice {
  /// Nothing with an empty `refusal`: a single manifest, or no image, which is what it is.
  std::optional<oci::Descriptor> entry;
  std::string refusal;  ///< why none runs: of the entry that came nearest
};

/// Asked only for an index.
struct Beside {
  transfer::Fetch fetch;  ///< the indexes inside it
  /// What is published of the files of its images.
  std::function<Result<std::optional<image::PublishedFacts>>()> facts;
};

/// Errors: those of transfer::list_variants() and of `beside`; corrupt (an index that is none).
Result<Choice> choose_entry(std::string_view document, std::string_view media_type,
                            const node::Profile& node, const match::Job& job, const Beside& beside);

}  // namespace berth::hub
