// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// Makes orphans below this process its children. PR_SET_CHILD_SUBREAPER
Result<void> become_subreaper();

/// Leftover processes of containers that share the pid namespace of this process.
class Orphans {
 public:
  /// This process is a subreaper from now on.
  static Result<Orphans> adopt();
  /// Kills and reaps new children of this process that are in another mount namespace than this
  /// process was in at adopt(), until none is left or two seconds have passed.
  /// /proc_pid_task_children(5)
  void end() const;

 private:
  std::string own_;  ///< "mnt:[4026531841]"
};

}  // namespace berth::sys
