// SPDX-License-Identifier: Apache-2.0
// What the root file system of a container is made by: the kernel's overlay, and where this user
// has none fuse-overlayfs or a copy of the image (docs/decisions/0141).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Turns the root of `spec`, an overlay, into what the driver of `request` makes. `directory`: of
/// the container, absolute. Pure.
void use_rootfs_driver(const RunRequest& request, const std::string& directory, oci::Spec& spec);

/// Makes the copy that the root of `spec` is, unless it is there; nothing for other roots. Whoever
/// is killed meanwhile leaves a part that the next call begins anew.
/// Errors: io (no space), not_found (a layer), usage (an image too deep).
Result<void> provide_root_copy(const RunRequest& request, const oci::Spec& spec,
                               const ContainerDirectory& directory);

}  // namespace berth::engine
