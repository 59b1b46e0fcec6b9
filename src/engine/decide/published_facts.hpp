// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/context/context.hpp"
#include "image/published_facts.hpp"
#include "image/store.hpp"
#include "image/transfer_protocol.hpp"

/// What was found in images and how they have run, published beside them at the registry: `berth
/// scan --attach`.
namespace berth::engine {

/// What was found in an image of the store, as it is published.
/// Errors: those of facts_of_image().
Result<image::PublishedImage> findings_of(const Context& context, const image::Image& image);

struct AttachFactsRequest {
  std::string reference;                ///< of an image in the store that a registry has too
  std::optional<std::string> sign_key;  ///< file of a private key, PEM
  /// One that has ended: how it ran is published too.
  std::optional<std::string> container;
  std::string berth_version;  ///< of the Berth that writes it
  image::RegistryAccess access;
};

/// Publishes the findings of the image that the store has under a name.
/// Errors: not_found (not in the store, or the registry has another image under this name now),
/// those of facts_of_image(), of record_of_run() and of transfer().
Result<image::TransferResult> attach_facts(const Context& context,
                                           const AttachFactsRequest& request);

}  // namespace berth::engine
