// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/cgroup/cgroup.hpp"

namespace berth::runtime {

/// A container's cgroup directory on the host.
struct CgroupView {
  std::string path;
  std::string name;  ///< below the container's /sys/fs/cgroup; empty: it is the whole mount
  /// Links to it, which distributions make beside a hierarchy of several controllers: "cpu" and
  /// "cpuacct" beside "cpu,cpuacct".
  std::vector<std::string> links{};
};
using CgroupViews = std::vector<CgroupView>;

/// Pure.
CgroupViews cgroup_views(const CgroupLayout& layout, const CgroupSet& cgroups);

}  // namespace berth::runtime
