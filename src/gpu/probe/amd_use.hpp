// SPDX-License-Identifier: Apache-2.0
// The load of AMD's GPUs, read from world-readable kernel files without a library or privileges.
// Source: Linux Documentation/gpu/amdgpu/driver-misc.rst and thermal.rst,
// drivers/gpu/drm/amd/amdkfd/kfd_process.c.
#pragma once

#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/use.hpp"

namespace berth::gpu {

/// Adds the AMD GPUs of `inventory`; reads nothing if there are none. Values that the kernel does
/// not show us are left empty. A partition has no values of its own: its load counts for its GPU.
/// The listed processes are those that have memory on the GPU through KFD, which includes every
/// ROCm program.
void add_amd_uses(const Inventory& inventory, Uses& uses);

}  // namespace berth::gpu
