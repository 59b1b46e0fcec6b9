// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Removes the GPUs, MIG slices and partitions with a node that this process's device cgroup
/// denies, and renumbers the others, as NVML does: in a batch job that was granted GPUs 4 and 5,
/// these become 0 and 1. Returns the number of removed GPUs, slices and partitions, and adds the
/// number of removed whole GPUs to `left_out`. One system call per node; wakes no GPU.
uint32_t leave_out_denied(Inventory& inventory);

/// Separates the devices that leave_out_denied() would remove. Usually there are none; then nothing
/// is copied.
Machine look_for_denied(Inventory inventory);

}  // namespace berth::gpu
