// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, as root. Hostile input: none; the job can neither kill nor stop processes of
// root.
#pragma once

#include <sys/types.h>

namespace berth::spank {

/// Detects that Slurm ends the step while slurmstepd still waits for the container. Slurm does not
/// notify plugins, but kills the processes of the step; with proctrack/linuxproc these are all
/// processes that slurmstepd has forked. So this object forks a process, and watches whether it is
/// killed. With proctrack/pgid Slurm does not kill it, and the end of the step is not detected.
class StepWatch {
 public:
  /// If the fork fails, the object detects nothing.
  StepWatch();
  ~StepWatch();
  StepWatch(StepWatch&&) = delete;

  /// A descriptor that is readable once Slurm has killed the process; -1: there is no process.
  int handle() const { return handle_; }

 private:
  pid_t pid_ = -1;
  int handle_ = -1;
};

}  // namespace berth::spank
