// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, which is root; in a step its effective user is the job's. A process forked
// here waits as root, because only root can enter the job's mount namespace; then it becomes the
// user for good, and executes berth. Hostile: a task of the user's, which chooses when to begin,
// with which variables and in which mount namespace: only one made by root is accepted, and root
// looks nothing up in it. The task could as well start berth itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::spank {

/// Closes all descriptors from `first` on, so that neither a program of the user nor a process that
/// outlives the tasks keeps Slurm's.
void close_from(unsigned first);

/// The program of a step, and its input.
struct Program {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int step = -1;                   ///< the container's end of the step's socket
  int rights = -1;                 ///< slurm::kRightsFile
  bool shows_output = false;       ///< its standard output goes to its standard error
};

/// berth before it has begun.
struct Waiting {
  int order = -1;    ///< a socket: for begin_berth(); if it is closed berth will never begin
  int process = -1;  ///< a pidfd of it; -1 where the kernel has none
};

/// Forks an orphaned process in a session of its own, which executes `program` as the user when the
/// first task asks for it. It is in the cgroups of slurmstepd, until spank/cgroup.hpp moves it:
/// those of a task may have fewer resources than the tasks of a node together. Errors: io.
Result<Waiting> fork_berth(const Program& program);

/// In a task: starts it with these variables and this process's standard error, in its mount
/// namespace, and closes `order`. Errors: io, and those of executing it.
Result<void> begin_berth(int order, const std::vector<std::string>& environment);

/// berth's work for a user after the job has ended.
struct Errand {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int environment = -1;            ///< a file: "K=V", each with a terminating null
  uid_t user = 0;
  gid_t group = 0;   ///< its only group
  int patience = 0;  ///< ms
};
/// In `slurmstepd spank epilog`, as root: runs it to its end, or kills it after `patience`. Then
/// kills everything it has started, in any session: those processes would be in no accounting and
/// never end, and a user's own state may make berth start them outside of the job. Errors: io, with
/// the first line of its output.
Result<void> run_errand(const Errand& errand);

}  // namespace berth::spank
