// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/cgroup.hpp"

namespace berth::runtime {

/// A container's cgroup directories on the host, with the name each gets below the container's
/// /sys/fs/cgroup; one with an empty name stands for the whole mount.
using CgroupViews = std::vector<std::pair<std::string, std::string>>;

/// Pure.
CgroupViews cgroup_views(const CgroupLayout& layout, const CgroupSet& cgroups);

}  // namespace berth::runtime
