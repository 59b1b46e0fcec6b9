// SPDX-License-Identifier: Apache-2.0
// Devices other than GPUs that NVIDIA_GDS and similar variables request.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "gpu/grant/reason.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

struct ExtraDevices {
  std::vector<Node> nodes;
  std::vector<DriverFile> files;
  std::vector<Reason> reasons;
};

/// Finds the devices of `request.features` in `inventory`. The node of an IMEX channel is to be
/// made if it is missing. A missing device adds a Reason. Pure.
/// Errors: not_found (the user explicitly requested a device that the machine does not have).
Result<ExtraDevices> find_extra_devices(const Request& request, const Inventory& inventory);

}  // namespace berth::gpu
