// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sys/fd/fd.hpp"

namespace berth::sys {

/// How many processors the machine has online. sysconf(3)
size_t online_processors();

/// How many processors this process may keep busy: those it may run on, or fewer where a cgroup
/// above it has a quota (a part of one counts as a whole). At least 1; what cannot be read sets no
/// limit.  sched_getaffinity(2), kernel cgroup-v2.rst "cpu.max", sched-bwc.rst
size_t usable_processors();

/// The quota alone, of a process with this /proc/self/cgroup; `root` is where cgroups are mounted.
/// SIZE_MAX: there is none.
size_t processors_of_quota(const Fd& root, std::string_view own_cgroups);

}  // namespace berth::sys
