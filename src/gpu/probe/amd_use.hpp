// SPDX-License-Identifier: Apache-2.0
// How busy AMD's GPUs are, as the kernel tells everybody: without a library, and without a right.
// Source: Linux Documentation/gpu/amdgpu/driver-misc.rst and thermal.rst,
// drivers/gpu/drm/amd/amdkfd/kfd_process.c.
#pragma once

#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/use.hpp"

namespace berth::gpu {

/// Adds the AMD GPUs of `inventory`; nothing is read where there are none. What the kernel does
/// not tell, or not us, is none. A partition has no figures of its own: what runs on it counts for
/// its GPU. Processes are those that have memory there through KFD, as all that computes by ROCm.
void add_amd_uses(const Inventory& inventory, Uses& uses);

}  // namespace berth::gpu
