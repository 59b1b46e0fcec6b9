// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/overlay.hpp"

namespace berth::sys {

/// Whether fuse-overlayfs and the FUSE device are available.  Errors: not_found, denied.
Result<void> check_fuse_overlay();

/// The overlay of `lower`, highest first, below `top`, served by fuse-overlayfs: detached, in the
/// caller's user namespace. Of the options of `top` only "volatile" has an effect; its attributes
/// are left to the code that attaches the mount. Read-only if `top` has no upper directory. For a
/// process without threads.
/// Shape: layers by handle, so their names may have any length and any character.
/// Errors: those of mount_fuse().
Result<Fd> mount_fuse_overlay(const std::vector<Layer>& lower, const OverlayTop& top);

}  // namespace berth::sys
