// SPDX-License-Identifier: Apache-2.0
// Devices besides the GPUs: storage, fabric and memory channels.
#pragma once

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {

/// Fills groups: those with a node on this machine, or for imex the major. Errors: io.
Result<void> read_groups(const DriverRoot& root, const NodeFinder& nodes, Inventory& inventory);

}  // namespace berth::gpu
