// SPDX-License-Identifier: Apache-2.0
// The load of AMD's GPUs, from world-readable kernel files: without a library or privileges.
// Source: Linux Documentation/gpu/amdgpu/driver-misc.rst and thermal.rst,
// drivers/gpu/drm/amd/amdkfd/kfd_process.c.
#pragma once

#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/use.hpp"

namespace berth::gpu {

/// Adds the AMD GPUs of `inventory`; reads nothing if there are none. Values that the kernel does
/// not show us are none. A partition has no values of its own: its load counts for its GPU.
/// Processes are those with memory there through KFD: every ROCm program.
void add_amd_uses(const Inventory& inventory, Uses& uses);

}  // namespace berth::gpu
