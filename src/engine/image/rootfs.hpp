// SPDX-License-Identifier: Apache-2.0
// Containers without an image: a directory of the host is the root file system, as it is.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/image/layer_view.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// What stands for the image: it says nothing.
image::Image no_image();

/// Whether the directory `path` is the host's own root.  Errors: not_found, usage (no directory).
Result<bool> is_host_root(const std::string& path);

/// Nothing may be made in the host's own root: refuses a mount, node or link of `spec` whose place
/// `root` does not have, unless another mount of the container provides it.
/// Errors: not_found.
Result<void> check_places(const oci::Spec& spec, const LayerView& root);

/// What is mounted below the directory `path`, as paths in a container with that root; what `spec`
/// mounts itself or hides is left out. A read-only root leaves these writable by itself.
Result<std::vector<std::string>> mounts_below(const std::string& path, const oci::Spec& spec);

}  // namespace berth::engine
