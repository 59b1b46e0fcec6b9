// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs, MIG slices and control nodes, read from procfs, sysfs and /dev only.
// Source: open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv-caps.c (forms of the files).
#pragma once

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {

/// Fills gpus, left_out, control_nodes, mig_control_nodes and problems. Errors: io.
Result<void> read_nvidia_devices(const DriverRoot& root, NodeFinder& nodes, Inventory& inventory);

// Devices other than GPUs: storage, fabric and memory channels.

/// Fills `groups` with those that have a node on this machine, or, for imex, a major number.
/// Errors: io.
Result<void> read_groups(const DriverRoot& root, const NodeFinder& nodes, Inventory& inventory);

}  // namespace berth::gpu
