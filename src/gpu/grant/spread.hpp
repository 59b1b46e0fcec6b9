// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/grant/occupancy.hpp"
#include "gpu/grant/selected.hpp"

namespace berth::gpu {

/// `count` of the `candidates`, in their order: those that who asks has already, then those on
/// which nobody computes without a lease, then those that the fewest have; among equals those near
/// the processors that were asked for, then those near each other (on one GPU, by NVLink or XGMI,
/// on one board, at one NUMA node); among equals the first. Pure. At most as many as there are.
std::vector<Selected> pick_least_used(const std::vector<Selected>& candidates, size_t count,
                                      const Occupancy& occupancy);

}  // namespace berth::gpu
