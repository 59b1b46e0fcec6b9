// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/grant.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

struct PlaceOptions {
  /// The `--state` directory; what is built lives in its `gpu/` and is shared by all containers.
  std::string state_dir;
  /// The image's unpacked layers, highest first, or one root directory: where the image's own
  /// loader cache is looked for. Hostile; no symbolic link in them is followed.
  std::vector<std::string> layers;
};

struct Placement {
  oci::ContainerEdits edits;
  /// An absolute directory to put below all layers of the image: it has the mount points, so that
  /// making them copies nothing up. Where the image hides one, the runtime makes it as ever.
  /// Empty when nothing is granted.
  std::string placeholder_layer;
};

/// Turns a grant into edits of a container's configuration. Builds, once per set of driver files, a
/// skeleton directory (placeholders and links), a layer of mount points and, once per image loader
/// cache, the merged cache; all are published by rename under a name made from their content. With
/// both in place it costs a few stats. The mounts come in this order: the skeleton at
/// /usr/local/nvidia, each library over its placeholder, binaries, sockets, configuration files,
/// /etc/ld.so.cache (and /etc/ld-musl-<arch>.path in an image with musl),
/// /proc/driver/nvidia/params. Errors: io and denied (the state directory).
Result<Placement> place(const Grant& grant, const PlaceOptions& options);

}  // namespace berth::gpu
