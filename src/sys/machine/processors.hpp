// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sys/fd/fd.hpp"

namespace berth::sys {

/// How many processors the machine has online. sysconf(3)
size_t online_processors();

/// How many processors this process may keep busy: its affinity, or fewer if a cgroup above it has
/// a quota (a fraction counts as a whole). At least 1; unreadable files set no limit.
/// sched_getaffinity(2), kernel cgroup-v2.rst "cpu.max", sched-bwc.rst
size_t usable_processors();

/// Only the quota, of a process with this /proc/self/cgroup; `root` is the mount point of cgroups.
/// SIZE_MAX: there is none.
size_t processors_of_quota(const Fd& root, std::string_view own_cgroups);

}  // namespace berth::sys
