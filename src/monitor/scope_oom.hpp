// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-monitor, as the user. Capabilities: none. Hostile: nothing, the kernel counts.
#pragma once

#include <sys/types.h>

#include <string>

#include "sys/fd/fd.hpp"

namespace berth::monitor {

/// Whether memory ran out in a systemd scope. systemd removes the scope when its last process has
/// ended, and the kernel's count with it, so the count is read on every change. For containers
/// without a systemd scope runtime::remove() (runtime/container.cpp) decides: their cgroups stay
/// until berth-runtime has read the count.
class ScopeMemory {
 public:
  /// Without a scope: no changes, no kills.
  ScopeMemory() = default;

  /// For the scope of the process, if it is in one and the kernel has cgroup v2.
  explicit ScopeMemory(pid_t pid);

  /// Readable when look() may find something new; -1 if it never will.
  int changes() const { return changes_.get(); }

  /// Reads the kernel's count; a kill once seen is remembered.
  void look();

  bool had_oom_kill() const { return had_oom_kill_; }

 private:
  std::string file_;  ///< memory.events
  sys::Fd changes_;
  bool had_oom_kill_ = false;
};

}  // namespace berth::monitor
