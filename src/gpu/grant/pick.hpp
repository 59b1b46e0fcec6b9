// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/grant/occupancy.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Picks `count` of the `candidates` and returns them in the order of `candidates`; all of them if
/// there are fewer. Prefers those that the requester holds already, then those without computing
/// processes outside of leases, then those with the fewest holders. Among equals it prefers those
/// near the requested processors, then those near each other (on one GPU, connected by NVLink or
/// XGMI, on one board, at one NUMA node), then the first ones. Pure.
std::vector<Selected> pick_least_used(const std::vector<Selected>& candidates, size_t count,
                                      const Occupancy& occupancy);

}  // namespace berth::gpu
