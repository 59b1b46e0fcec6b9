// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::runtime {

/// One value to write into one file of a container's cgroup directory.
struct CgroupWrite {
  std::string limit;       ///< the member of linux.resources that asks for it: "memory.limit"
  std::string controller;  ///< "memory"
  std::string file;        ///< "memory.max"
  std::string value;
  /// What to write instead if `file` does not exist; an empty `file` here: nothing.
  struct Instead {
    std::string file;
    std::string value;
  } instead = {};
  enum class Absent { unmet, ignore } absent = Absent::unmet;  ///< what a missing file means
};

/// Finds errors that can be found without asking the kernel.
/// Errors: corrupt (by its JSON path: a number out of range, memory.swap below memory.limit, a
/// string that would lead a file name out of the directory).
Result<void> check_resources(const oci::Resources& resources);

/// The writes to cgroup v1 files for `resources`, checked, in order; not the devices. Zero means
/// "not set", as in runc, because callers of runc fill unset members with zero; except for
/// pids.limit and cpu.idle. memory.kernel, kernelTCP and useHierarchy no longer limit anything.
std::vector<CgroupWrite> v1_writes(const oci::Resources& resources);

/// The same for cgroup v2. Errors: corrupt (memory.swap without memory.limit).
/// Source: the conversions of crun and runc: shares to weight by the curve that keeps 1024 at 100.
Result<std::vector<CgroupWrite>> v2_writes(const oci::Resources& resources);

/// Whether the write only lifts a limit (such as pids.limit of -1), so that no cgroup is needed for
/// it.
bool lifts_limit(const CgroupWrite& write);

/// cpu.weight for cpu.shares: 2 → 1, 1024 → 100, 262144 → 10000.
uint64_t weight_of_shares(uint64_t shares);

}  // namespace berth::runtime
