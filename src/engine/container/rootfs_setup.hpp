// SPDX-License-Identifier: Apache-2.0
// Makes the root file system of one container for its driver: the kernel's overlay, or, for users
// without it, fuse-overlayfs or a copy of the image (docs/decisions/0141).
// engine/image/rootfs_driver.hpp has chosen the driver before.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Turns the root of `spec`, an overlay, into the root of the driver that `request` names.
/// `directory`: the container's directory, absolute. Pure.
void use_rootfs_driver(const RunRequest& request, const std::string& directory, oci::Spec& spec);

/// Makes the copied root that `spec` names, unless it exists; does nothing for other roots. A call
/// that is killed leaves a partial copy, which the next call replaces.
/// Errors: io (no space), not_found (a layer), usage (an image too deep).
Result<void> provide_root_copy(const RunRequest& request, const oci::Spec& spec,
                               const ContainerDirectory& directory);

}  // namespace berth::engine
