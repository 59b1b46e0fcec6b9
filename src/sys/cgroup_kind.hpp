// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::sys {

/// How the cgroup file systems are mounted, told by the file system types alone.
enum class CgroupKind { none, legacy, hybrid, unified };

/// cgroup2 on /sys/fs/cgroup is unified, cgroup2 on its "unified" hybrid. statfs(2)
CgroupKind cgroup_kind(const std::string& mount = "/sys/fs/cgroup");

/// True when `gid` exists in the user namespace of this process (/proc/self/gid_map).
bool is_group_mapped(unsigned gid);

}  // namespace berth::sys
