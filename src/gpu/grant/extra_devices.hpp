// SPDX-License-Identifier: Apache-2.0
// Devices besides GPUs that NVIDIA_GDS and similar variables request.
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

/// Finds the devices of `request.features` in `inventory`. An IMEX channel without a node is to be
/// made. A missing device gives a reason. Pure.
/// Errors: not_found (the machine has none of what the user typed).
Result<ExtraDevices> find_extra_devices(const Request& request, const Inventory& inventory);

}  // namespace berth::gpu
