// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing but the processes inside.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/state/state.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {

/// The layout of this machine with the places where the cgroups of `state` begin.
Result<CgroupLayout> cgroup_layout_of(const State& state);

/// The container's cgroup below the mount point of the unified hierarchy, or of v1's pids; empty
/// without cgroups.
Result<std::string> whole_cgroup_path(const State& state);

/// The directories that `state` names; those that are gone are left out.
Result<CgroupSet> cgroups_of(const State& state);

/// What an unmet limit of the container is.
Unmet unmet_limits(const State& state);

/// A container as it is at this moment.
struct Found {
  Entry entry;
  State state;
  CgroupSet cgroups;
  Status status;
};

/// Errors: as Store::get and Entry::read.
Result<Found> find(const Store& store, const std::string& id);

/// A handle of the container's first process, checked to be the one that the state means: between
/// a look at its start time and a kill by number another process could get the number. To be
/// released, because it is not our child.
/// Errors: not_found (it has ended).
Result<sys::Process> first_process(const State& state);

/// Whether the container's other processes may outlive the first one: it is not the first process
/// of a pid namespace. Also true for one whose first process has gone and left others behind.
bool outlives_first_process(const Found& found);

/// Whether processes of others are in the pid namespace of a running container: it has joined
/// theirs, or they have joined its own (`--pid container:NAME`).
/// Errors: those of a list of /proc.
Result<bool> shares_pid_namespace(const Found& found);

/// All processes of a container: those in its cgroup, else those in its pid namespace, else the
/// first one; empty when it has stopped.
Result<std::vector<pid_t>> processes_of(const Found& found);
/// Those of them that count as the container's: without the processes of ours that are
/// in its cgroup because it pays for them, which one can tell where it has its own pid namespace.
Result<std::vector<pid_t>> shown_processes_of(const Found& found);

}  // namespace berth::runtime
