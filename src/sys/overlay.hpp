// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd.hpp"
#include "sys/layer.hpp"

namespace berth::sys {

/// What an overlay has beside its lower layers. By handle: names of any length and with any
/// character fit then, and a container's mount table does not show the host's paths.
struct OverlayTop {
  Fd upper;                          ///< empty: it is read-only
  Fd work;                           ///< beside `upper`
  std::vector<std::string> options;  ///< "userxattr"
  uint64_t attributes = 0;           ///< of the mount: MOUNT_ATTR_*
  unsigned long flags = 0;           ///< the same for mount(2): MS_*
};

/// Mounts an overlay of `lower`, highest first, at the directory `target` and gives a handle of its
/// root, a place for the *at() calls. Where the kernel takes no detached mount as a layer
/// (before 6.15) they are mounted at `target` first, below the overlay. Errors: denied, busy
/// (another mount writes there), io.  fsconfig(2), else mount(2)
Result<Fd> mount_overlay(const std::vector<Layer>& lower, const OverlayTop& top,
                         const std::string& target);

}  // namespace berth::sys
