// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The nodes of GPUs that no container may get here: those that policy withholds (gpu.never) and,
/// in a job, those of others. For nodes that are requested by path, and for a container that
/// requests all nodes. `choice` is the result of choose(). Pure.
std::vector<Node> nodes_out_of_reach(const Choice& choice, const Machine& machine);

}  // namespace berth::gpu
