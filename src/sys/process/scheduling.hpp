// SPDX-License-Identifier: Apache-2.0
// The calling thread's share of processors, disks and memory nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// The members of struct sched_attr, in its units: nice −20 to 19, priority 1 to 99 for the
/// real-time policies, nanoseconds for the deadline policy.
struct Scheduling {
  uint32_t policy = 0;  ///< SCHED_*
  uint64_t flags = 0;   ///< SCHED_FLAG_*
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
/// Errors: denied, usage (the kernel refuses the combination), busy (not enough processor time is
/// left for the deadline). sched_setattr(2)
Result<void> set_scheduling(const Scheduling& scheduling);

/// `io_class` is IOPRIO_CLASS_*, `level` 0 to 7. Errors: denied, usage.  ioprio_set(2)
Result<void> set_io_priority(int io_class, int level);

/// `mode` with its MPOL_F_* bits; `nodes` are numbers of memory nodes. Errors: usage (a node that
/// does not exist), unsupported (no NUMA in this kernel). set_mempolicy(2)
Result<void> set_memory_policy(int mode, const std::vector<unsigned>& nodes);

/// The policy of the calling thread: a mode with its MPOL_F_* bits. Errors: unsupported (no NUMA in
/// this kernel), denied.  get_mempolicy(2)
Result<int> memory_policy();

/// personality(2)
Result<void> set_personality(unsigned long persona);

/// Restricts the thread to these processors. Missing ones are ignored.
/// Errors: usage (none of them exists or is allowed).  sched_setaffinity(2)
Result<void> set_affinity(const std::vector<unsigned>& processors);
/// Allows all processors of the cgroup.
Result<void> reset_affinity();
/// sched_getaffinity(2)
Result<std::vector<unsigned>> affinity();

}  // namespace berth::sys
