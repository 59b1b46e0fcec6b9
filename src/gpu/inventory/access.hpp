// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Leaves out the GPUs, MIG slices and partitions with a node that this process's device cgroup
/// denies, and counts the other GPUs anew, as NVML does: in a batch job that was given GPUs 4 and 5
/// those are 0 and 1. Gives how many were left out; GPUs are added to `left_out`. One system call
/// for each node; none is woken.
uint32_t leave_out_denied(Inventory& inventory);

/// Tells apart what leave_out_denied() would leave out; where that is nothing, which is the rule,
/// nothing is copied.
Machine look_for_denied(Inventory inventory);

}  // namespace berth::gpu
