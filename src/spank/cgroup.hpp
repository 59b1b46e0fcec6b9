// SPDX-License-Identifier: Apache-2.0
// Moves berth to the right cgroup of a step. Runs as: slurmstepd, as root. Hostile input: none.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// Call when the tasks are forked but do not run yet. Moves the waiting process with the pidfd
/// `process` into the cgroup with the step's limits, if slurmstepd itself is not in that cgroup.
/// With cgroup v1 that is the freezer cgroup of the task, through which Slurm kills the processes
/// of the step. With v2 slurmstepd is in STEP/slurm, which allows all devices of the job, while the
/// device program of the step is on STEP/user; a new directory for berth is made below STEP/user.
/// Returns that directory for remove_cgroup(); empty: none was made. Failures with v1 are ignored:
/// berth ends anyway when the socket is closed.
/// Source: Slurm, src/plugins/cgroup/v2/cgroup_v2.c.
/// Errors: io (with v2, where berth would mistake the job's devices for the step's).
Result<std::string> track(pid_t task, int process);

/// Removes `directory`, and first kills processes that are still in it. Call when berth has ended:
/// Slurm does not remove a cgroup with an unknown child.
void remove_cgroup(const std::string& directory);

}  // namespace berth::spank
