// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

/// Makes files below `<state_dir>/gpu`, and binds of them, for requests of a CDI file's edits that
/// a configuration has no member for: driver parameters with ModifyDeviceFiles: 0 (from `params`,
/// the machine's text; empty: it has none), and the application profile that restricts EGL and
/// Vulkan to their GPUs. Clears the requests.
/// Errors: io, denied (the state directory).
Result<void> place_requests(oci::ContainerEdits& edits, const std::string& state_dir,
                            const std::string& params);

/// The minors of the nodes /dev/nvidia<minor> among `nodes`, one bit each; those below 64.
uint64_t minors_of(const std::vector<oci::DeviceNode>& nodes);

/// The application profile that restricts EGL and Vulkan to the GPUs of these minors.
std::string application_profile(uint64_t visible);

}  // namespace berth::gpu
