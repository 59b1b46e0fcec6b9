// SPDX-License-Identifier: Apache-2.0
// Containers without an image: a directory of the host is the root file system, unchanged.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/image/layer_view.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// An empty image as a placeholder.
image::Image no_image();

/// Whether the directory `path` is the host's own root.  Errors: not_found, usage (not a
/// directory).
Result<bool> is_host_root(const std::string& path);

/// Refuses a mount, node or link of `spec` at a path that `root` lacks, unless another mount of the
/// container provides that path: nothing may be created in the host's own root.
/// Errors: not_found.
Result<void> check_places(const oci::Spec& spec, const LayerView& root);

/// The mounts below the directory `path`, as paths in a container with that root, except those that
/// a mount of `spec` covers. A read-only root alone leaves them writable.
Result<std::vector<std::string>> mounts_below(const std::string& path, const oci::Spec& spec);

}  // namespace berth::engine
