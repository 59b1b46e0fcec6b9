// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, as root. Hostile: nothing; the job can neither kill nor stop root's
// processes.
#pragma once

#include <sys/types.h>

namespace berth::spank {

/// Notices when Slurm ends the step while its container is still being waited for. Slurm gives no
/// notice, but kills the step's processes: with proctrack/linuxproc everything that slurmstepd has
/// forked. This forks a process only to see it killed. Where that does not work (with
/// proctrack/pgid) the step seems to go on.
class StepWatch {
 public:
  /// Without a process it notices nothing.
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
