// SPDX-License-Identifier: Apache-2.0
// The lease of a container's GPUs while berth-runtime makes the container.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.hpp"
#include "gpu/ledger/ledger.hpp"

namespace berth::gpu {

struct ContainerLease {
  Ledger ledger;
  HeldLease held;
  /// The lease was taken here, for another engine's container, and ends with it; otherwise Berth's
  /// engine ends it.
  bool taken_here = false;
};

/// The lease that Berth's engine took for the container of the bundle in `bundle`; if it was lost
/// (the container is started again), a new one for the same GPUs, which is recorded in the bundle.
/// Nothing if the container has none. Errors: busy, corrupt, io.
Result<std::optional<ContainerLease>> find_lease(const std::string& bundle);

/// Records the process and cgroup on which the lease depends. Returns the file to remove with the
/// container, or "".
Result<std::string> set_life(ContainerLease& lease, pid_t pid, const std::string& cgroup);

}  // namespace berth::gpu
