// SPDX-License-Identifier: Apache-2.0
// Changes that berth-runtime makes to the configuration of another engine's container: requested
// and permitted GPUs and CDI devices become nodes, mounts and variables of it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "gpu/ledger/ledger.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

// The lease of a container's GPUs while berth-runtime makes the container.

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

/// Paths; all absolute.
struct InjectOptions {
  std::string config_dir;  ///< policy.json; empty: /etc/berth
  /// The directory of the inventory, the index of CDI devices, and placed files. Empty:
  /// default_state_directory().
  std::string state_dir;
  /// The environment of this program: the variables of a batch job limit the GPUs.
  std::vector<std::string> caller{};
  /// Berth's engine is the caller: devices and the site's rules are in the configuration already.
  /// Only a flag may set this: images and users write annotations.
  bool decided = false;
};

/// The container to be made.
struct Injected {
  std::string id;
  std::string bundle;  ///< its directory
  std::string rootfs;  ///< of the root file system
};

/// Amends `spec`, the configuration of `container`, and returns the lease of its GPUs. If the
/// inventory or the index is stale, the program `berth` beside this one makes it. Without a request
/// and a policy this costs one system call, and none if all is `decided`. Errors: not_found (no
/// driver, no such device), denied (policy; a file that others can write), busy (a GPU is held
/// exclusively), unsupported (a requirement of the image), usage, interrupted (berth did not answer
/// in time).
Result<std::optional<ContainerLease>> inject(const InjectOptions& options,
                                             const Injected& container, oci::Spec& spec, Log& log);

}  // namespace berth::gpu
