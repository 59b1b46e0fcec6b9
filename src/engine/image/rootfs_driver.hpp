// SPDX-License-Identifier: Apache-2.0
// Chooses the driver for the roots of new containers, and finds the driver of an existing container
// (docs/decisions/0141). engine/container/rootfs_setup.hpp makes the root of a container with the
// chosen driver.
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
  std::string cost;    ///< a warning if the user did not choose the driver
};
/// The driver that --rootfs-driver names, else the first that works.
/// Errors: usage (no such driver), not_found (fuse-overlayfs, if --rootfs-driver names it), io (no
/// space).
Result<RootfsChoice> rootfs_choice(const Context& context);

/// Whether this mount is the root of a container with the driver `overlay` or `fuse-overlayfs`.
bool is_root(const oci::Mount& mount);

/// The driver of the root of `spec`; nothing for a directory of the host.
std::optional<RootfsDriver> rootfs_driver_of(const oci::Spec& spec);

/// The layers that a copied root was copied from, highest first.
std::vector<std::string> copied_layers(const oci::Spec& spec);

/// Adds the directory `layer`, which holds mount points, below all layers of the root of `spec`, so
/// that the image's own files win. Does nothing if `layer` is empty or the root is not an overlay.
void add_lowest_layer(const std::string& layer, oci::Spec& spec);

}  // namespace berth::engine
