// SPDX-License-Identifier: Apache-2.0
// What the root file system of a container is made by: the kernel's overlay, and where this user
// has none fuse-overlayfs or a copy of the image (docs/decisions/0141).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/container_directory.hpp"
#include "engine/context.hpp"
#include "engine/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

std::string_view rootfs_driver_name(RootfsDriver driver);

/// What makes the roots of new containers here.
struct RootfsChoice {
  RootfsDriver driver = RootfsDriver::overlay;
  std::string reason;  ///< empty: it is what works everywhere
  std::string cost;    ///< what a user should know who did not ask for it
};
/// The driver that --rootfs-driver names, else the first that works.
/// Errors: usage (no such driver), not_found (fuse-overlayfs, by name), io (no space).
Result<RootfsChoice> rootfs_choice(const Context& context);

/// Settles `rootfs_driver` and `rootfs_reason` of a request for a new container by that. Warns
/// where it costs something.  Errors: the same.
Result<void> choose_rootfs_driver(const Context& context, RunRequest& request);

/// Turns the root of `spec`, an overlay, into what the driver of `request` makes. `directory`: of
/// the container, absolute. Pure.
void use_rootfs_driver(const RunRequest& request, const std::string& directory, oci::Spec& spec);

/// Which of them made the root of `spec`; nothing for a directory of the host.
std::optional<RootfsDriver> rootfs_driver_of(const oci::Spec& spec);

/// Of a copied root: the layers that it was made of, highest first.
std::vector<std::string> copied_layers(const oci::Spec& spec);

/// Makes the copy that the root of `spec` is, unless it is there; nothing for other roots. Whoever
/// is killed meanwhile leaves a part that the next call begins anew.
/// Errors: io (no space), not_found (a layer), usage (an image too deep).
Result<void> provide_root_copy(const RunRequest& request, const oci::Spec& spec,
                               const ContainerDirectory& directory);

/// Where a container has its copied root, below its directory.
inline constexpr std::string_view kCopyDirectory = "root";

}  // namespace berth::engine
