// SPDX-License-Identifier: Apache-2.0
// Chooses the variant of an image that fits this node, by the entries of its index.
#pragma once

#include <string>
#include <vector>

#include "image/reference.hpp"
#include "image/transfer_protocol.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// The documents that make an image, as bytes and as structs.
struct ImageDocuments {
  std::vector<Document> indexes;  ///< outermost first; empty if the name means a manifest
  Document manifest_document;
  oci::Manifest manifest;
  std::string config_bytes;
  oci::ImageConfig config;

  const Digest& target() const {
    return indexes.empty() ? manifest_document.digest : indexes.front().digest;
  }
};

/// The manifest `document` and its config, checked. Errors: corrupt, those of the registry.
Result<ImageDocuments> get_image_documents(Registry& registry, Document document);

/// The image that a reference means on this node: for an index, the best entry for `wish` with a
/// config that does not contradict the entry; for a manifest, the only image. Unless `request`
/// forces it, an image that does not run on the request's node is refused. Errors: unsupported,
/// those of the registry.
Result<ImageDocuments> choose_variant(Registry& registry, const image::Reference& reference,
                                      const oci::Platform& wish, const image::PullRequest& request,
                                      Events& events);

}  // namespace berth::transfer
