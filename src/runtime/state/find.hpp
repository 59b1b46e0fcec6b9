// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: only the processes in the container.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/state/state.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {

/// The cgroup layout of this machine, with the starts that `state` records.
Result<CgroupLayout> cgroup_layout_of(const State& state);

/// The container's cgroup below the mount point of the unified hierarchy, or of v1's pids; empty
/// without cgroups.
Result<std::string> whole_cgroup_path(const State& state);

/// The cgroup directories that `state` names; missing ones are left out.
Result<CgroupSet> cgroups_of(const State& state);

/// How to treat an unmet limit of the container.
Unmet unmet_limits(const State& state);

/// A container and its present status.
struct Found {
  Entry entry;
  State state;
  CgroupSet cgroups;
  Status status;
};

/// Looks a container up. Errors: as Store::get and Entry::read.
Result<Found> find(const Store& store, const std::string& id);

/// A handle of the container's first process, checked to be the one that the state names: between a
/// check of the start time and a kill(2) another process could get the same pid. The caller calls
/// release(), because the process is not our child.
/// Errors: not_found (it has ended).
Result<sys::Process> first_process(const State& state);

/// Whether the container's other processes may outlive the first one: the first one is not the
/// first process of a pid namespace. Also true if it has ended and others are left.
bool outlives_first_process(const Found& found);

/// Whether other containers' processes are in the pid namespace of a running container: it has
/// joined the namespace of another container, or others have joined its namespace (`--pid
/// container:NAME`).
/// Errors: those of listing /proc.
Result<bool> shares_pid_namespace(const Found& found);

/// All processes of a container: those in its cgroup, else those in its pid namespace, else the
/// first one; empty when it has stopped.
Result<std::vector<pid_t>> processes_of(const Found& found);
/// Those of processes_of() that are shown as the container's. Leaves out processes of our own that
/// are in the container's cgroup only to be charged to it; these can be recognized only if the
/// container has its own pid namespace.
Result<std::vector<pid_t>> shown_processes_of(const Found& found);

}  // namespace berth::runtime
