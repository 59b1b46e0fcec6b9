// SPDX-License-Identifier: Apache-2.0
// Devices besides GPUs that NVIDIA_GDS and its like ask for.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "gpu/grant/reason.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

struct FeatureItems {
  std::vector<Node> nodes;
  std::vector<DriverFile> files;
  std::vector<Reason> reasons;
};

/// What `request.features` gets of `inventory`. An IMEX channel without a node is one to be made.
/// What the machine does not have is a reason. Pure.
/// Errors: not_found (the machine has none of what the user typed).
Result<FeatureItems> find_features(const Request& request, const Inventory& inventory);

}  // namespace berth::gpu
