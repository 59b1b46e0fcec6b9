// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/grant.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

struct PlaceOptions {
  /// The `--state` directory. Files are built in its subdirectory `gpu/`; all containers share
  /// them.
  std::string state_dir;
  /// The directory of volumes of driver files; on a disk if possible.
  std::string volume_dir;
  /// Whether a volume belongs to a stopped container that is kept, even if no process has it
  /// mounted. Empty: no volume does.
  std::function<bool(const std::string& name)> keeps_volume = {};
  /// The image has musl: its loader reads a path file instead of a cache.
  bool musl = false;
};

/// A file of the host that is copied into the container.
struct Copy {
  std::string host_path;
  std::string path;  ///< in the container
  uint32_t mode = 0444;
};

struct Placement {
  oci::ContainerEdits edits;
  /// An absolute directory to put below all layers of the image. It has the mount points, so that
  /// making them causes no copy-up. If the image hides a mount point, the runtime makes it as
  /// usual. Empty if there are no mounts.
  std::string mountpoint_layer;
  /// DriverMode::copy: files to copy into the container's own layer.
  std::vector<Copy> copies;
  std::vector<GrantedLink> copied_links;
};

/// Removes from a new grant the nodes other than those of GPUs (/dev/infiniband/uverbs0) that the
/// device cgroup of this process denies, and changes their reasons: the container could not open
/// them either. For GPUs, leave_out_denied() in gpu/inventory does this before GPUs are chosen.
void leave_out_denied(Grant& grant);

/// Turns a grant into edits of a container's configuration. Host files that it needs are built once
/// per content and published by rename, so that the next start finds them with a few calls of stat:
/// - bind: a skeleton directory (mount points and links) at Grant::directory, in which each
///   library is bound over its mount point; binaries and configuration files are bound over mount
///   points at their usual paths;
/// - volume: one directory with all these files, bound at Grant::directory, and its programs bound
///   at their usual paths;
/// - copy: only a list of files to copy;
/// - in each mode: sockets, /proc/driver as the container may see it, and the device nodes.
/// Errors: io and denied (the state directory), not_found (a driver file is gone).
Result<Placement> place(const Grant& grant, const PlaceOptions& options);

}  // namespace berth::gpu
