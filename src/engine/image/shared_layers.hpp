// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

enum class MediaTypes { oci, docker };
/// Converts the "dir:" output of skopeo and buildah to an OCI layout: manifest.json, and blobs
/// named by their digests. A Docker config stays as it is, since the OCI config lacks some of its
/// members; the manifest and its descriptors get the requested types. Leaves any other directory
/// unchanged.
/// Errors: corrupt, io. Source: containers-transports(5) "dir:path".
Result<void> lay_out(const Context& context, const std::string& directory, MediaTypes types);

/// Replaces the layers of the only image of `layout` by blobs of the store with the same contents.
/// A builder compresses the layers of the base image again, which gives other bytes; every registry
/// and store would then keep both copies. Errors: corrupt (the layout), io.
Result<void> share_layers(const Context& context, const std::string& layout);

}  // namespace berth::engine
