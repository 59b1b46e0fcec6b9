// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// The profile of this machine. Unreadable values stay empty, i.e. unknown. A synthetic tree `root`
/// stands for the machine: GPUs and fabric are only the tree's, and so are the other parts that it
/// has; CPU, kernel, libc and MPI that it lacks are the machine's. `inventory` was read from
/// `root`.
Profile gather(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

}  // namespace berth::node
