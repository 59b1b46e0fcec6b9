// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/published_facts.hpp"
#include "image/store.hpp"
#include "image/transfer_protocol.hpp"

/// Publishes the findings in images, and their run records, at the registry of the images: `berth
/// scan --attach`.
namespace berth::engine {

/// The findings of an image of the store, in the form that is published.
/// Errors: those of facts_of_image().
Result<image::PublishedImage> findings_of(const Context& context, const image::Image& image);

struct AttachFactsRequest {
  std::string reference;                ///< an image in the store that a registry has too
  std::optional<std::string> sign_key;  ///< file of a private key, PEM
  /// A container that has ended: its run record is published too.
  std::optional<std::string> container;
  std::string berth_version;  ///< the version of Berth that publishes
  image::RegistryAccess access;
};

/// Publishes the findings of the image that `reference` names in the store.
/// Errors: not_found (not in the store, or the registry has another image under this name now),
/// those of facts_of_image(), of record_of_run() and of transfer().
Result<image::TransferResult> attach_facts(const Context& context,
                                           const AttachFactsRequest& request);

}  // namespace berth::engine
