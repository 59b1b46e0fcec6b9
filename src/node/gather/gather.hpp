// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// The profile of this machine. Unreadable values stay empty, i.e. unknown. If `root` is a
/// synthetic tree, GPUs and fabric come from the tree only. CPU, kernel, libc and MPI come from the
/// tree too, or from the machine if the tree does not have them. `inventory` was read from `root`.
Profile gather(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

}  // namespace berth::node
