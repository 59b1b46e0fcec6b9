// SPDX-License-Identifier: Apache-2.0
// Parsers for the kernel's files about GPUs. Source: open-gpu-kernel-modules
// kernel-open/nvidia/nv-procfs.c, nv-caps.c.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::gpu {

/// Parses "Label: value" lines; labels and values are trimmed, and the last of equal labels wins.
std::map<std::string, std::string> parse_labels(std::string_view text);

/// Majors of character devices by driver name, from the content of /proc/devices.
std::map<std::string, uint32_t> parse_majors(std::string_view text);

/// The version in "NVRM version: … Kernel Module  570.133.20  Sun Mar 23 …"; empty if there is
/// none.
std::string parse_module_version(std::string_view text);

/// Version of the loaded module: /sys/module/nvidia/version, else /proc/driver/nvidia/version.
Result<std::string> module_version(const DriverRoot& root);

// The world-readable sysfs files of KFD, the kernel's side of ROCm, about AMD's GPUs. Source: Linux
// drivers/gpu/drm/amd/amdkfd/kfd_topology.c, kfd_process.c.

inline constexpr std::string_view kKfdNodes = "/sys/class/kfd/kfd/topology/nodes";
inline constexpr std::string_view kKfdProcesses = "/sys/class/kfd/kfd/proc";

/// A node of KFD's topology that is a GPU, or a partition of one.
struct KfdNode {
  uint32_t render_minor = 0;
  uint64_t unique_id = 0;  ///< 0: the GPU has none
  std::string pci_address;
  uint32_t partition = 0;    ///< 0 if the GPU is not partitioned
  std::string architecture;  ///< "gfx90a"
};

/// "key value" lines; values that are not numbers are left out.
std::map<std::string, uint64_t> parse_properties(std::string_view text);

/// Parses nodes/<N>/properties; nothing for a processor, which is a node of the topology too.
std::optional<KfdNode> parse_kfd_node(std::string_view properties);

/// Keyed by KFD's gpu_id. Nodes that a job's device cgroup hides are missing.
std::map<uint64_t, KfdNode> read_kfd_nodes(const DriverRoot& root);

/// A process that has queues on a GPU or partition, i.e. computes there; its pid is of the
/// machine's pid namespace. Memory alone does not count: a program that only lists the devices may
/// have some.
struct KfdProcess {
  int64_t pid = 0;
  KfdNode node;
};
/// Each process at most once per node of read_kfd_nodes().
std::vector<KfdProcess> read_kfd_processes(const DriverRoot& root);

}  // namespace berth::gpu
