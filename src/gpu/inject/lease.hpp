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
  /// It was taken here, for another engine's container, and goes with that; else Berth's engine
  /// sees to its end.
  bool taken_here = false;
};

/// That which Berth's engine has taken for the container of the bundle in `bundle`; where it has
/// been lost meanwhile (the container is started again), another one for the same GPUs, of which
/// the bundle is told. Nothing where there is none. Errors: busy, corrupt, io.
Result<std::optional<ContainerLease>> find_lease(const std::string& bundle);

/// Writes down by what it lives. Gives the file that is to be removed with the container, or "".
Result<std::string> set_life(ContainerLease& lease, pid_t pid, const std::string& cgroup);

}  // namespace berth::gpu
