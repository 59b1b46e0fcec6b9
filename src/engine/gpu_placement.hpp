// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/select.hpp"
#include "sys/fd.hpp"

namespace berth::engine {

/// The processors of each NUMA node that has memory, as the kernel lists them: {0: "0-15,32-47"}.
using NumaNodes = std::map<int, std::string>;

/// Those below `root`, which is "/" but in tests. Errors: io. A kernel without NUMA has none.
/// Documentation/ABI/stable/sysfs-devices-node
Result<NumaNodes> read_numa_nodes(const sys::Fd& root);

/// Lists for a cpuset: "0-15,32-47" and "0".
struct Placement {
  std::string cpus;
  std::string mems;
  bool operator==(const Placement&) const = default;
};

/// The processors and the memory beside these GPUs. Nothing where that is all of the machine, or
/// where one of them has no node that is known. Pure.
std::optional<Placement> place_beside(const std::vector<gpu::Selected>& gpus,
                                      const NumaNodes& nodes);

}  // namespace berth::engine
