// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/overlay.hpp"

namespace berth::sys {

/// Whether fuse-overlayfs is there, and a device for it.  Errors: not_found, denied.
Result<void> check_fuse_overlay();

/// The overlay of `lower`, highest first, below `top`, as fuse-overlayfs serves it: detached, in
/// the user namespace of the caller. Of the options of `top` only "volatile" means something here;
/// its attributes are left to whoever attaches the mount. Read-only where `top` has no upper
/// directory. For a process without threads.
/// Shape: layers by handle, so their names may have any length and any character.
/// Errors: those of mount_fuse().
Result<Fd> mount_fuse_overlay(const std::vector<Layer>& lower, const OverlayTop& top);

}  // namespace berth::sys
