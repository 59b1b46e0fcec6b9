// SPDX-License-Identifier: Apache-2.0
// Where berth is among the cgroups of a step. Runs as: slurmstepd, as root. Hostile: nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// When tasks are forked and none runs: puts what waits at the pidfd `process` where what the step
/// may have is laid down, if slurmstepd itself is not there. With cgroups of version 1 that is the
/// task's freezer cgroup, by which Slurm ends what is of the step. With version 2 slurmstepd is in
/// STEP/slurm, which has all devices of the job, and what the step may open is a program of
/// STEP/user; below it a directory of berth's own is made. Returns that one, for remove_cgroup();
/// empty: there is none. What cannot be done with version 1 is left: berth ends by its socket.
/// Source: Slurm, src/plugins/cgroup/v2/cgroup_v2.c.
/// Errors: io (with version 2, where berth would take the job's devices for the step's).
Result<std::string> track(pid_t task, int process);

/// When berth has ended. Slurm removes no directory that has one which it does not know. What is
/// still in it is killed.
void remove_cgroup(const std::string& directory);

}  // namespace berth::spank
