// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

enum class MediaTypes { oci, docker };
/// Converts the "dir:" output of skopeo and buildah to an OCI layout: manifest.json, and blobs
/// named by their digests. A Docker config stays as it is, since OCI's lacks some of its members;
/// the manifest and its descriptors get the requested types. Leaves any other directory unchanged.
/// Errors: corrupt, io. Source: containers-transports(5) "dir:path".
Result<void> lay_out(const Context& context, const std::string& directory, MediaTypes types);

/// Replaces the layers of a layout's only image by the store's blobs of the same contents: a
/// builder packs the layers of its base image again, with other bytes, and every registry and store
/// would keep both. Errors: corrupt (the layout), io.
Result<void> share_layers(const Context& context, const std::string& layout);

}  // namespace berth::engine
