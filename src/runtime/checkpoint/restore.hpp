// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, and a child of it that becomes criu. Capabilities: the caller's. Hostile:
// the root file system, in which mount points are made by handle; the image is trusted.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/checkpoint/criu.hpp"
#include "runtime/launch.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// The arguments of restore.
struct RestoreRequest {
  LaunchRequest launch;
  CriuOptions criu;
  std::string lsm_profile;        ///< "apparmor:NAME", in place of the profile in the images
  std::string lsm_mount_context;  ///< in place of the context in the images
};

/// Makes a container from the images of a checkpoint; the config, root file system and limits are
/// those of the bundle. In the foreground this call waits until the container ends, removes it and
/// returns its exit status; detached it returns 0. On failure nothing of the container is left.
/// Errors: unsupported (find_criu(), check_restorable()), io (criu's own reasons), exists.
Result<int> restore(const Store& store, RestoreRequest request, Detach detach, Report& report,
                    Log& log);

}  // namespace berth::runtime
