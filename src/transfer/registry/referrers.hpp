// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/registry.hpp"

/// Artifacts that refer to an image: one small blob each, filed by the registry under the image's
/// digest, or under the tag "sha256-HEX" where the registry keeps no referrers.
/// What is small is embedded where it is named (the descriptor's "data"), which saves requests.
/// Source: distribution-spec 1.1 "Referrers", image-spec 1.1 manifest.md, descriptor.md "data".
namespace berth::transfer {

struct Artifact {
  std::string type;                                ///< artifactType
  oci::Descriptor subject;                         ///< what it refers to
  std::string media_type;                          ///< of the blob
  std::string blob;                                ///< at most 4 MiB
  std::map<std::string, std::string> annotations;  ///< of the blob
  std::string created;                             ///< RFC 3339; the newest is the one that counts
};

/// Puts it into the registry. An older artifact of the same type and subject is left where the
/// registry files by itself, and replaced in the tag that clients keep.
/// Gives its digest.
/// Errors: those of Registry; busy (others changed that tag at the same moment, again and again).
Result<Digest> attach(Registry& registry, const Artifact& artifact);

/// The newest artifact of a type that refers to `subject`; nothing where there is none.
/// Costs one to four requests: two less where its contents are embedded.
/// Errors: corrupt (what is there contradicts its digests, or refers to something else), those of
/// Registry.
Result<std::optional<Artifact>> find_artifact(Registry& registry, const Digest& subject,
                                              const std::string& type);

}  // namespace berth::transfer
