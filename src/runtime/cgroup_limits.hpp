// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::string instead;  ///< the file to try where `file` is not there; "": none
  enum class Absent { unmet, ignore } absent = Absent::unmet;  ///< what a missing file means
};

/// What `resources` asks for (but for devices) in the files of cgroup v1, in the order of writing.
/// Errors: corrupt (a page size or file name that would leave the directory).
Result<std::vector<CgroupWrite>> v1_writes(const oci::Resources& resources);

/// The same for cgroup v2. Errors: corrupt; usage (memory.swap below memory.limit, or without one).
/// Source: the conversions of crun and runc: shares to weight by the curve that keeps 1024 at 100.
Result<std::vector<CgroupWrite>> v2_writes(const oci::Resources& resources);

/// cpu.weight for cpu.shares: 2 → 1, 1024 → 100, 262144 → 10000.
uint64_t weight_of_shares(uint64_t shares);

}  // namespace berth::runtime
