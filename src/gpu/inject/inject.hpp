// SPDX-License-Identifier: Apache-2.0
// What berth-runtime does to the configuration of another engine's container: GPUs and CDI devices
// that it asks for, and that its asker may have, become nodes, mounts and variables of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "gpu/inject/lease.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

/// Where things are; absolute.
struct InjectOptions {
  std::string config_dir;  ///< policy.json; empty: /etc/berth
  /// The inventory and the index of CDI devices; what is laid out goes there. Empty: as
  /// default_state_directory().
  std::string state_dir;
  /// The variables that this program was called with: those of a batch job take GPUs away.
  std::vector<std::string> caller{};
  /// Berth's engine calls: devices and the site's rules are in the configuration. Only a command
  /// line can say so: images and users write annotations.
  bool decided = false;
};

/// The container that is made.
struct Injected {
  std::string id;
  std::string bundle;  ///< its directory
  std::string rootfs;  ///< of the root file system
};

/// Amends `spec`, the configuration of `container`, and gives the lease of its GPUs. Where the
/// inventory or the index are stale the program `berth` beside this one is asked for them. Where
/// the configuration asks for nothing and there is no policy this costs one system call, and none
/// where all is `decided`. Errors: not_found (no driver,
/// no such device), denied (policy; a file that others can write), busy (somebody keeps a GPU to
/// himself), unsupported (a requirement of the
/// image), usage, interrupted (berth did not answer in time).
Result<std::optional<ContainerLease>> inject(const InjectOptions& options,
                                             const Injected& container, oci::Spec& spec, Log& log);

}  // namespace berth::gpu
