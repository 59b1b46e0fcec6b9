// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::runtime {

/// One mounted cgroup hierarchy.
struct CgroupHierarchy {
  enum class Version { v1, v2 };
  Version version = Version::v1;
  std::string mount;                     ///< "/sys/fs/cgroup/memory"
  std::string own;                       ///< where the caller is, below `mount`: "/" or "/a/b"
  std::vector<std::string> controllers;  ///< "memory", "name=systemd"; those the caller may enable
  /// Where the paths of containers begin, below `mount`: "/jobs/17"; empty: at the mount.
  std::string start{};
};

/// How this machine's cgroups are mounted. A controller is set through the hierarchy that has it:
/// on a hybrid machine v1 for most, v2 for the rest.
struct CgroupLayout {
  enum class Kind { none, legacy, hybrid, unified };
  std::vector<CgroupHierarchy> hierarchies;

  Kind kind() const;
  const CgroupHierarchy* unified() const;
  const CgroupHierarchy* find(std::string_view controller) const;
};

/// Parses /proc/self/mountinfo and /proc/self/cgroup; the controllers of a v2 hierarchy stay empty.
/// Pure. Skips malformed lines.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup);

/// CgroupHierarchy::start by mount point, for the hierarchies that have one.
using CgroupStarts = std::map<std::string, std::string>;

/// The caller's own cgroups; hierarchies where it is at the top are left out. Pure.
CgroupStarts own_cgroups(const CgroupLayout& layout);

/// Makes the paths of containers begin at `starts`. Pure.
void begin_at(const CgroupStarts& starts, CgroupLayout& layout);

/// Reads the layout of this machine; no cgroup at all is Kind::none, not an error.
Result<CgroupLayout> detect_cgroup_layout();

}  // namespace berth::runtime
