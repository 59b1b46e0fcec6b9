// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// Makes this process the parent of the orphans among its descendants. PR_SET_CHILD_SUBREAPER
Result<void> become_subreaper();

/// Processes that are left over from containers that share the pid namespace of this process.
class Orphans {
 public:
  /// Makes this process a subreaper from now on.
  static Result<Orphans> adopt();
  /// Kills and reaps new children of this process that are in another mount namespace than this
  /// process was in at adopt(), until none is left or two seconds have passed.
  /// proc_pid_task_children(5)
  void end() const;

 private:
  std::string own_;  ///< "mnt:[4026531841]"
};

}  // namespace berth::sys
