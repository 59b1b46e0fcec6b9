// SPDX-License-Identifier: Apache-2.0
// Which driver: the choice for the roots of new containers, and what an existing container has
// (docs/decisions/0141). engine/container/rootfs_setup.hpp then makes one container's root for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The driver for the roots of new containers.
struct RootfsChoice {
  RootfsDriver driver = RootfsDriver::overlay;
  std::string reason;  ///< empty: the default
  std::string cost;    ///< a warning for a user who did not choose it
};
/// The driver that --rootfs-driver names, else the first that works.
/// Errors: usage (no such driver), not_found (fuse-overlayfs, by name), io (no space).
Result<RootfsChoice> rootfs_choice(const Context& context);

/// Whether this mount is a root made by a mounting driver.
bool is_root(const oci::Mount& mount);

/// The driver of the root of `spec`; nothing for a directory of the host.
std::optional<RootfsDriver> rootfs_driver_of(const oci::Spec& spec);

/// For a copied root: the layers that it was copied from, highest first.
std::vector<std::string> copied_layers(const oci::Spec& spec);

/// Adds the directory `layer`, which holds mount points, below all layers of the root of `spec`, so
/// that the image's own files win. Does nothing if `layer` is empty or the root is not an overlay.
void add_lowest_layer(const std::string& layer, oci::Spec& spec);

}  // namespace berth::engine
