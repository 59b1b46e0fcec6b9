// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/registry.hpp"

/// Artifacts that refer to an image: one small blob each, listed by the registry under the image's
/// digest, or under the tag "sha256-HEX" if the registry has no referrers API. Small content is
/// embedded in its descriptor ("data"), which saves requests.
/// Source: distribution-spec 1.1 "Referrers", image-spec 1.1 manifest.md, descriptor.md "data".
namespace berth::transfer {

struct Artifact {
  std::string type;                                ///< artifactType
  oci::Descriptor subject;                         ///< the manifest it refers to
  std::string media_type;                          ///< of the blob
  std::string blob;                                ///< at most 4 MiB
  std::map<std::string, std::string> annotations;  ///< of the blob
  std::string created;                             ///< RFC 3339; the newest counts
};

/// Puts the artifact into the registry and returns its digest. If the registry lists referrers
/// itself, an older artifact of the same type and subject stays; in the tag that clients maintain
/// it is replaced.
/// Errors: those of Registry; busy (other clients kept changing that tag at the same time).
Result<Digest> attach(Registry& registry, const Artifact& artifact);

/// The newest artifact of a type that refers to `subject`; nothing if there is none. Costs one to
/// four requests, two less if the content is embedded.
/// Errors: corrupt (it contradicts its digests, or refers to something else), those of Registry.
Result<std::optional<Artifact>> find_artifact(Registry& registry, const Digest& subject,
                                              const std::string& type);

}  // namespace berth::transfer
