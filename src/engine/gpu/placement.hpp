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

/// The processors of each NUMA node that has any.
using NumaNodes = std::map<int, Numbers>;

/// Those below `root`: "/", or a tree made for tests. A kernel without NUMA has none. Errors: io.
/// Documentation/ABI/stable/sysfs-devices-node
Result<NumaNodes> read_numa_nodes(const sys::Fd& root);

/// Those of this machine; of a synthetic driver the tree says where its GPUs are. Errors: io.
Result<NumaNodes> numa_nodes_of(const gpu::Inventory& inventory);

/// What this process may use, and so a container of it: of "Cpus_allowed_list" and
/// "Mems_allowed_list". proc_pid_status(5)
struct Allowed {
  Numbers cpus;
  Numbers mems;
};
Allowed parse_allowed(std::string_view status);

/// "0-15,32-47" and "0"; the second is empty where it cannot be had.
struct Placement {
  std::string cpus;
  std::string mems;
  bool operator==(const Placement&) const = default;
};

/// The processors and the memory beside these GPUs. Nothing where that is no choice: all of what is
/// allowed, or none of it, or where a GPU has no node that is known. Pure.
std::optional<Placement> place_beside(const std::vector<gpu::Selected>& gpus,
                                      const NumaNodes& nodes, const Allowed& allowed);

/// Whether containers of root can be given a cpuset.
bool has_cpusets();

/// What keeps a container in its place: a cpuset, which is a limit; or where its processes begin,
/// which needs no right, and is a wish.
enum class KeptBy { cpuset, affinity };
void set_placement(const Placement& placement, KeptBy by, oci::Spec& spec);

}  // namespace berth::engine
