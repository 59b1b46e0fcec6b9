// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, which is root; in a step its effective user is the job's. What is forked
// here waits so, because only root can enter the mounts of the job's; then it becomes the user for
// good, and berth is executed as he. Hostile: a task of the user's, which says when to begin, with
// which variables and in which mounts: those of root's making alone, in which root looks for
// nothing. It could as well start berth.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::spank {

/// Whatever Slurm has open is not for a program that is the user's, or outlives the tasks.
void close_from(unsigned first);

/// The program of a step, and what it is given.
struct Program {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int step = -1;                   ///< the container's end of the step's socket
  int rights = -1;                 ///< slurm::kRightsFile
  bool shows_output = false;       ///< its standard output goes where its standard error goes
};

/// berth before it has begun.
struct Waiting {
  int order = -1;    ///< a socket: for begin_berth(); when it is closed berth will never begin
  int process = -1;  ///< a pidfd of it; -1 where the kernel has none
};

/// Forks a process of nobody's and in a session of its own, which becomes `program` as the user
/// when the first task says so. It is in the cgroups of slurmstepd, until spank/cgroup.hpp has it
/// elsewhere: those of a task may hold less than what the tasks of a node have together. Errors:
/// io.
Result<Waiting> fork_berth(const Program& program);

/// In a task: lets it begin with these variables and this process's standard error, in its mounts,
/// and closes `order`. Errors: io, and those of executing it.
Result<void> begin_berth(int order, const std::vector<std::string>& environment);

/// What berth does for a user when his job has ended.
struct Errand {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  int environment = -1;            ///< a file: "K=V", each with its null
  uid_t user = 0;
  gid_t group = 0;   ///< he has no others
  int patience = 0;  ///< ms
};
/// In `slurmstepd spank epilog`, as root: runs it to its end, or kills it when the patience is
/// over. Whatever it has started is killed then, too, in any session: nobody would count or end it,
/// and what a user's own state makes berth run there is out of his job. Errors: io, with the first
/// line that it has said.
Result<void> run_errand(const Errand& errand);

}  // namespace berth::spank
