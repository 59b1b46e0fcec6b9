// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The nodes of GPUs that nobody may be given here: those that policy withholds (gpu.never) and,
/// in a job, those of others. For nodes that are asked for by their paths, and for a container that
/// is to have all of them. `choice` is what choose() gave. Pure.
std::vector<Node> nodes_out_of_reach(const Choice& choice, const Machine& machine);

}  // namespace berth::gpu
