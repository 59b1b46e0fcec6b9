// SPDX-License-Identifier: Apache-2.0
// How processes ended that are not, or not yet, ours to wait for.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "sys/process/process.hpp"

namespace berth::sys {

/// What wait4(2) wrote as a status.
ExitStatus exit_status(int wait_status);

/// How our child `pid` ended, which stays to be reaped: whoever is killed now has lost nothing.
/// Nothing when it still runs or is no child of ours.  waitid(2) WNOWAIT
std::optional<ExitStatus> look_at_exit(pid_t pid);

/// Reaps what has ended of our children but for `kept` and `also`: a subreaper gets the orphans of
/// containers that share its pid namespace.
void reap_others(pid_t kept, pid_t also = -1);

/// How the process of `pidfd` ended, somebody's child, whether or not it was reaped since the
/// handle was opened. Nothing where the kernel does not tell (Linux < 6.15). pidfd_open(2),
/// PIDFD_GET_INFO
std::optional<ExitStatus> exit_of(const Fd& pidfd);

}  // namespace berth::sys
