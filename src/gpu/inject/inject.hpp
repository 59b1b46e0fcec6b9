// SPDX-License-Identifier: Apache-2.0
// Changes that berth-runtime makes to the configuration of another engine's container: it adds the
// nodes, mounts and variables of the requested and permitted GPUs and CDI devices.
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
  /// berth-runtime took the lease for another engine's container, and the lease ends with the
  /// container. Otherwise Berth's engine ends it.
  bool taken_here = false;
};

/// The lease that Berth's engine took for the container of the bundle in `bundle`. If the lease was
/// lost (the container is started again), a new lease for the same GPUs is taken and recorded in
/// the bundle. Nothing if the container has no lease. Errors: busy, corrupt, io.
Result<std::optional<ContainerLease>> find_lease(const std::string& bundle);

/// Records the process and cgroup on which the lease depends. Returns the lease's file, which the
/// caller removes with the container, or "" if Berth's engine ends the lease.
Result<std::string> set_life(ContainerLease& lease, pid_t pid, const std::string& cgroup);

/// All paths are absolute.
struct InjectOptions {
  std::string config_dir;  ///< the directory of policy.json; empty: /etc/berth
  /// The directory of the inventory, the index of CDI devices, and the files that gpu/place makes.
  /// Empty: default_state_directory().
  std::string state_dir;
  /// The environment of this program. The variables of a batch job in it limit the GPUs.
  std::vector<std::string> caller{};
  /// Berth's engine is the caller: devices and the site's rules are in the configuration already.
  /// Only a flag may set this: images and users write annotations.
  bool decided = false;
};

/// The container to be made.
struct Injected {
  std::string id;
  std::string bundle;  ///< its directory
  std::string rootfs;  ///< the path of the root file system
};

/// Amends `spec`, the configuration of `container`, and returns the lease of its GPUs. If the
/// inventory or the index is stale, this runs the program `berth` in its own directory to make it.
/// Without a request and a policy this costs one system call; with `decided`, none. Errors:
/// not_found (no driver, no such device), denied (policy; a file that others can write), busy (a
/// GPU is held exclusively), unsupported (a requirement of the image), usage, interrupted (berth
/// did not answer in time).
Result<std::optional<ContainerLease>> inject(const InjectOptions& options,
                                             const Injected& container, oci::Spec& spec, Log& log);

}  // namespace berth::gpu
