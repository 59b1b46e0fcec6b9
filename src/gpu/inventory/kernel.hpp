// SPDX-License-Identifier: Apache-2.0
// Parsers for the kernel's files about GPUs. Source: open-gpu-kernel-modules
// kernel-open/nvidia/nv-procfs.c, nv-caps.c.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::gpu {

/// "Label: value" lines, label and value trimmed; the last of equal labels wins.
std::map<std::string, std::string> parse_labels(std::string_view text);

/// Majors of character devices by driver name, from the text of /proc/devices.
std::map<std::string, uint32_t> parse_majors(std::string_view text);

/// The version in "NVRM version: … Kernel Module  570.133.20  Sun Mar 23 …"; empty if there is
/// none.
std::string parse_module_version(std::string_view text);

/// Version of the loaded module: /sys/module/nvidia/version, else /proc/driver/nvidia/version.
Result<std::string> module_version(const DriverRoot& root);

}  // namespace berth::gpu
