// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

/// Lays out, as binds of files below `<state_dir>/gpu`, what edits of a CDI file ask for and a
/// configuration has no member for: parameters of the driver that say ModifyDeviceFiles: 0 (from
/// `params`, the machine's text; empty: it has none), and the application profile that tells EGL
/// and Vulkan which GPUs they may see. Clears what it has done.
/// Errors: io, denied (the state directory).
Result<void> place_requests(oci::ContainerEdits& edits, const std::string& state_dir,
                            const std::string& params);

/// The minors of the nodes /dev/nvidia<minor> among `nodes`, one bit each; those below 64.
uint64_t minors_of(const std::vector<oci::DeviceNode>& nodes);

/// The application profile with which EGL and Vulkan see the GPUs of these minors alone.
std::string application_profile(uint64_t visible);

}  // namespace berth::gpu
