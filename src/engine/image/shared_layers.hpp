// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

enum class MediaTypes { oci, docker };
/// Makes an OCI layout of what "dir:" of skopeo and buildah holds: manifest.json, and blobs that
/// are named by their digests. A config of Docker stays as it is, since it has members that OCI's
/// lacks; the manifest and what it names get the types that were asked for. Anything else stays
/// what it is. Errors: corrupt, io. Source: containers-transports(5) "dir:path".
Result<void> lay_out(const Context& context, const std::string& directory, MediaTypes types);

/// Gives the layers of a layout's only image that the store has, packed by somebody else, the names
/// of those blobs: builders pack what they build upon anew, in other bytes of the same contents,
/// and every registry and store would keep both. Errors: corrupt (the layout), io.
Result<void> share_layers(const Context& context, const std::string& layout);

}  // namespace berth::engine
