// SPDX-License-Identifier: Apache-2.0
// The place of berth among the cgroups of a step. Runs as: slurmstepd, as root. Hostile: nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// Call when tasks are forked and none runs: moves the waiting process of the pidfd `process` into
/// the cgroup with the step's limits, if slurmstepd itself is not in it. With cgroup v1 that is the
/// task's freezer cgroup, through which Slurm kills the step's processes. With v2 slurmstepd is in
/// STEP/slurm, which allows all devices of the job, and the step's device program is on STEP/user;
/// a directory of berth's own is made below that. Returns it for remove_cgroup(); empty: none.
/// Failures with v1 are ignored: the socket's end ends berth.
/// Source: Slurm, src/plugins/cgroup/v2/cgroup_v2.c.
/// Errors: io (with v2, where berth would mistake the job's devices for the step's).
Result<std::string> track(pid_t task, int process);

/// Call when berth has ended: Slurm does not remove a directory with an unknown child. Kills
/// processes still in it.
void remove_cgroup(const std::string& directory);

}  // namespace berth::spank
