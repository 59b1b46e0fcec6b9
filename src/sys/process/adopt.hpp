// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// Orphans below this process become its children. PR_SET_CHILD_SUBREAPER
Result<void> become_subreaper();

/// What processes of a container leave behind where they share the pid namespace of this process.
class Orphans {
 public:
  /// This process is a subreaper from now on.
  static Result<Orphans> adopt();
  /// Kills and reaps what has become a child of this process and is in another mount namespace than
  /// this process was in at adopt(), until there is none or two seconds have passed.
  /// proc_pid_task_children(5)
  void end() const;

 private:
  std::string own_;  ///< "mnt:[4026531841]"
};

}  // namespace berth::sys
