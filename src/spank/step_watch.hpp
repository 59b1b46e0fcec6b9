// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, as root. Hostile: nothing; the job can neither end nor stop what is root's.
#pragma once

#include <sys/types.h>

namespace berth::spank {

/// Tells when Slurm ends the step while its container is still being waited for. Slurm says it to
/// nobody, but kills what is of the step: with proctrack/linuxproc all that slurmstepd has forked.
/// This forks one that waits for that, and for nothing else. What it does not find out (with
/// proctrack/pgid) is as if the step went on.
class StepWatch {
 public:
  /// Where no process can be made it finds out nothing.
  StepWatch();
  ~StepWatch();
  StepWatch(StepWatch&&) = delete;

  /// Readable when Slurm has killed it; -1: there is none.
  int handle() const { return handle_; }

 private:
  pid_t pid_ = -1;
  int handle_ = -1;
};

}  // namespace berth::spank
