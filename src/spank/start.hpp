// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, which is root; in a step its effective user is that of the job. A process
// forked here waits as root, because only root can enter the mount namespace of the job; then it
// becomes the user for good, and executes berth. Hostile: a task of the user, which chooses when
// berth begins, with which variables and in which mount namespace. Only a mount namespace made by
// root is accepted, and root looks up no path in it. The task could start berth itself just as
// well.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::spank {

/// Closes all descriptors from `first` on, so that no program of the user, and no process that
/// outlives the tasks, keeps descriptors of Slurm.
void close_from(unsigned first);

/// The program of a step, with its arguments and descriptors.
struct Program {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int step = -1;                   ///< the container's end of the step's socket
  int rights = -1;                 ///< slurm::kRightsFile
  bool shows_output = false;       ///< standard output goes to standard error
};

/// A process that will execute berth.
struct Waiting {
  int order = -1;    ///< a socket for begin_berth(); if closed, berth never begins
  int process = -1;  ///< a pidfd; -1 if the kernel has no pidfds
};

/// Forks an orphaned process in a new session, which executes `program` as the user when the first
/// task asks for it. The process stays in the cgroups of slurmstepd until spank/cgroup.hpp moves
/// it: the cgroups of one task may have fewer resources than all tasks of the node together.
/// Errors: io.
Result<Waiting> fork_berth(const Program& program);

/// Call in a task: starts berth with these variables, and with the standard error and the mount
/// namespace of this process; closes `order`. Errors: io, and those of executing it.
Result<void> begin_berth(int order, const std::vector<std::string>& environment);

/// A run of berth for a user after the job has ended.
struct Errand {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int environment = -1;            ///< a file: "K=V", each with a terminating null
  uid_t user = 0;
  gid_t group = 0;   ///< the only group
  int patience = 0;  ///< ms
};
/// Call in `slurmstepd spank epilog`, as root. Runs berth to its end, or kills it after `patience`.
/// Then kills all processes that berth has started, in any session: no job would account for them
/// or end them, and files of the user may make berth start processes. Errors: io, with the first
/// line of berth's output.
Result<void> run_errand(const Errand& errand);

}  // namespace berth::spank
