// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-monitor, as the user. Capabilities: none. Hostile: nothing, the kernel counts.
#pragma once

#include <sys/types.h>

#include <string>

#include "sys/fd/fd.hpp"

namespace berth::monitor {

/// Whether memory was short in a scope of systemd's. systemd removes the scope when its last
/// process has ended, and the kernel's count goes with it, so it is read when it changes. What is
/// no scope stays until berth-runtime has read the count.
class ScopeMemory {
 public:
  /// Of no scope: nothing changes, nobody was killed.
  ScopeMemory() = default;

  /// Of the scope in which the process is, if it is in one and the kernel has cgroup v2.
  explicit ScopeMemory(pid_t pid);

  /// Readable when look() may find something new; -1 where there is nothing to wait for.
  int changes() const { return changes_.get(); }

  /// Reads the kernel's count; once a process was killed that stays so.
  void look();

  bool was_short() const { return was_short_; }

 private:
  std::string file_;  ///< memory.events
  sys::Fd changes_;
  bool was_short_ = false;
};

}  // namespace berth::monitor
