// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// The profile of this machine. What cannot be read is left empty, which is what nobody knows.
/// Where `root` is a synthetic tree, it stands for the machine: GPUs and fabric are the tree's
/// alone, and so is what else it has; of the CPU, the kernel, libc and MPI that it lacks the
/// machine's is taken. `inventory` was read from `root`.
Profile gather(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

}  // namespace berth::node
