// SPDX-License-Identifier: Apache-2.0
// The exit status of processes that we cannot reap, or not yet.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "sys/process/process.hpp"

namespace berth::sys {

/// Converts a status of wait4(2).
ExitStatus exit_status(int wait_status);

/// How our child `pid` ended, without reaping it: if we are killed now, nothing is lost. Nothing
/// when it still runs or is no child of ours.  waitid(2) WNOWAIT
std::optional<ExitStatus> look_at_exit(pid_t pid);

/// Reaps all ended children except `kept` and `also`: a subreaper gets the orphans of containers
/// that share its pid namespace.
void reap_others(pid_t kept, pid_t also = -1);

/// How the process of `pidfd`, not necessarily our child, ended, even if it was reaped after the
/// handle was opened. Nothing if the kernel does not report it (Linux < 6.15). pidfd_open(2),
/// PIDFD_GET_INFO
std::optional<ExitStatus> exit_of(const Fd& pidfd);

}  // namespace berth::sys
