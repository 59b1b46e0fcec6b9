// SPDX-License-Identifier: Apache-2.0
// GPUs, MIG slices and device nodes, from procfs, sysfs and /dev alone.
// Source: open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv-caps.c (forms of the files).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// A row of a synthetic tree's dev/nodes: "path major minor mode", the mode octal.
/// Errors: corrupt, with the line.
Result<std::vector<Node>> parse_node_table(std::string_view text);

/// Fills gpus, control_nodes, mig_control_nodes, params and problems.
/// Errors: corrupt (the node table of a synthetic tree), io.
Result<void> read_devices(const DriverRoot& root, Inventory& inventory);

}  // namespace berth::gpu
