// SPDX-License-Identifier: Apache-2.0
// GPUs, MIG slices and device nodes, from procfs, sysfs and /dev alone.
// Source: open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv-caps.c (forms of the files).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/probe/driver_root.hpp"
#include "gpu/probe/inventory.hpp"

namespace berth::gpu {

/// "Label: value" lines, label and value trimmed; the last of equal labels counts.
std::map<std::string, std::string> parse_labels(std::string_view text);

/// Majors of character devices by driver name, of the text of /proc/devices.
std::map<std::string, uint32_t> parse_majors(std::string_view text);

/// A row of a synthetic tree's dev/nodes: "path major minor mode", the mode octal.
/// Errors: corrupt, with the line.
Result<std::vector<Node>> parse_node_table(std::string_view text);

/// Of "NVRM version: … Kernel Module  570.133.20  Sun Mar 23 …"; empty when there is none.
std::string parse_module_version(std::string_view text);

/// Version of the loaded module: /sys/module/nvidia/version, else /proc/driver/nvidia/version.
Result<std::string> module_version(const DriverRoot& root);

/// Fills gpus, control_nodes, mig_control_nodes, params and problems.
/// Errors: corrupt (the node table of a synthetic tree), io.
Result<void> read_devices(const DriverRoot& root, Inventory& inventory);

}  // namespace berth::gpu
