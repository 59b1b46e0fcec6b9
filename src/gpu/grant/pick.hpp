// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/grant/occupancy.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Picks `count` of the `candidates`, in their order. Preferred are those that the requester holds
/// already, then those without computing processes outside of leases, then those with the fewest
/// holders; among equals those near the requested processors, then those near each other (on one
/// GPU, by NVLink or XGMI, on one board, at one NUMA node); then the first. Pure. At most as many
/// as there are.
std::vector<Selected> pick_least_used(const std::vector<Selected>& candidates, size_t count,
                                      const Occupancy& occupancy);

}  // namespace berth::gpu
