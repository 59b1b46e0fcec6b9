// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.hpp"
#include "base/result.hpp"
#include "gpu/grant/select.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The processors of each NUMA node that has processors.
using NumaNodes = std::map<int, Numbers>;

/// The nodes below `root`: "/", or a tree made for tests. Empty for a kernel without NUMA. Errors:
/// io.
/// Documentation/ABI/stable/sysfs-devices-node
Result<NumaNodes> read_numa_nodes(const sys::Fd& root);

/// The nodes of this machine, or of a synthetic driver's tree. Errors: io.
Result<NumaNodes> numa_nodes_of(const gpu::Inventory& inventory);

/// What this process, and so its container, may use: "Cpus_allowed_list" and "Mems_allowed_list".
/// proc_pid_status(5)
struct Allowed {
  Numbers cpus;
  Numbers mems;
};
Allowed parse_allowed(std::string_view status);

/// "0-15,32-47" and "0"; the second is empty if memory cannot be bound.
struct Placement {
  std::string cpus;
  std::string mems;
  bool operator==(const Placement&) const = default;
};

/// The processors and the memory near these GPUs. Nothing if these are all allowed processors, if
/// none of them is allowed, or if the NUMA node of a GPU is unknown. Pure.
std::optional<Placement> place_beside(const std::vector<gpu::Selected>& gpus,
                                      const NumaNodes& nodes, const Allowed& allowed);

/// Whether containers of root can have a cpuset.
bool has_cpusets();

/// How to bind a container to processors: by a cpuset, which is a limit, or by the initial affinity
/// of its processes, which needs no privilege and which the processes can change.
enum class KeptBy { cpuset, affinity };
void set_placement(const Placement& placement, KeptBy by, oci::Spec& spec);

}  // namespace berth::engine
