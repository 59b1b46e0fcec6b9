// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-monitor, as the user. Capabilities: none. Hostile input: none, the input is a
// count by the kernel.
#pragma once

#include <sys/types.h>

#include <string>

#include "sys/fd/fd.hpp"

namespace berth::monitor {

/// Whether memory ran out in a systemd scope. When the last process of a scope has ended, systemd
/// removes it, and the kernel's count of OOM kills with it, so the count is read on every change.
/// Other cgroups exist until berth-runtime has read the count, in runtime::remove().
class ScopeMemory {
 public:
  /// For a container without a scope: changes() is -1 and no kill is seen.
  ScopeMemory() = default;

  /// Watches the scope of process `pid`, if the process is in one and the kernel has cgroup v2.
  explicit ScopeMemory(pid_t pid);

  /// Readable when look() may find something new; -1 if it never will.
  int changes() const { return changes_.get(); }

  /// Reads the kernel's count. A kill that was seen is remembered.
  void look();

  bool had_oom_kill() const { return had_oom_kill_; }

 private:
  std::string file_;  ///< memory.events
  sys::Fd changes_;
  bool had_oom_kill_ = false;
};

}  // namespace berth::monitor
