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
  /// The `--state` directory; what is built lives in its `gpu/` and is shared by all containers.
  std::string state_dir;
  /// Where volumes of driver files are kept: on a disk, if there is one.
  std::string volume_dir;
  /// Whether a volume of that name is somebody's although no process has it mounted: a container's
  /// that has ended and is kept. Empty: it is nobody's.
  std::function<bool(const std::string& name)> keeps_volume = {};
  /// The image has musl, whose loader reads a file of its own.
  bool musl = false;
};

/// A file of the host that becomes the container's own.
struct Copy {
  std::string host_path;
  std::string path;  ///< in the container
  uint32_t mode = 0444;
};

struct Placement {
  oci::ContainerEdits edits;
  /// An absolute directory to put below all layers of the image: it has the mount points, so that
  /// making them copies nothing up. Where the image hides one, the runtime makes it as ever.
  /// Empty when nothing is mounted.
  std::string placeholder_layer;
  /// To be put into the container's own layer: DriverMode::copy.
  std::vector<Copy> copies;
  std::vector<GrantedLink> copied_links;
};

/// Takes out of a new grant the nodes beside the GPUs (/dev/infiniband/uverbs0) that this process's
/// device cgroup denies, and changes their reasons: the container could not open them either. GPUs
/// are looked at before they are chosen, by leave_out_denied() of the inventory.
void leave_out_denied(Grant& grant);

/// Turns a grant into edits of a container's configuration. What it needs on the host it builds
/// once per content and publishes by rename, so that the next start finds it with a few stats:
/// - bind: a skeleton directory (placeholders and links) at /usr/local/nvidia, each library bound
///   over its placeholder there, binaries and configuration files over theirs;
/// - volume: one directory with all of them (volume.hpp), bound at /usr/local/nvidia;
/// - copy: nothing, but a list of what is to be copied;
/// - in each mode sockets, /proc/driver as the container may see it, and the nodes.
/// Errors: io and denied (the state directory), not_found (a driver file is gone).
Result<Placement> place(const Grant& grant, const PlaceOptions& options);

}  // namespace berth::gpu
