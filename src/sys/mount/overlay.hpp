// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/layer.hpp"

namespace berth::sys {

/// The upper part of an overlay. The directories are given by handle, so that names may have any
/// length and any character, and a container's mount table does not show the host's paths.
struct OverlayTop {
  Fd upper;                          ///< empty: the overlay is read-only
  Fd work;                           ///< next to `upper`
  std::vector<std::string> options;  ///< "userxattr"
  uint64_t attributes = 0;           ///< attributes of the mount: MOUNT_ATTR_*
  unsigned long flags = 0;           ///< the same for mount(2): MS_*
  std::string source = "overlay";    ///< the source in mount tables
};

/// Mounts an overlay of `lower`, highest first, at the directory `target` (an fd_path() if the
/// directory's path may change) and returns a handle of the overlay's root, for the *at() calls. If
/// the kernel does not accept detached mounts as layers (before 6.15, or mounts of an outer user
/// namespace), the layers are mounted at `target` until the overlay is made. Errors: denied, busy
/// (another mount writes there), io. fsconfig(2), else mount(2)
Result<Fd> mount_overlay(const std::vector<Layer>& lower, const OverlayTop& top,
                         const std::string& target);

/// Whether this process can mount a writable overlay below `place`, an empty directory on the file
/// system of the layers; the caller removes the files that this makes there. With `user_attributes`
/// the overlay marks are "user." attributes, as in the layers of ordinary users. For a process
/// without threads.
/// Errors: denied, unsupported, io (the kernel's message).
Result<void> try_overlay(const Fd& place, bool user_attributes);

/// Whether fuse-overlayfs and the FUSE device are available.  Errors: not_found, denied.
Result<void> check_fuse_overlay();

/// The overlay of `lower`, highest first, and `top` above it, served by fuse-overlayfs: detached,
/// in the caller's user namespace. Of the options of `top` only "volatile" has an effect. The
/// attributes of `top` are set by the code that attaches the mount. Read-only if `top` has no upper
/// directory. For a process without threads.
/// Shape: layers by handle, so their names may have any length and any character.
/// Errors: those of mount_fuse().
Result<Fd> mount_fuse_overlay(const std::vector<Layer>& lower, const OverlayTop& top);

}  // namespace berth::sys
