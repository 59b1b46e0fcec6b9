// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/layer.hpp"

namespace berth::sys {

/// The upper part of an overlay. By handle: names may then have any length and any character, and a
/// container's mount table does not show the host's paths.
struct OverlayTop {
  Fd upper;                          ///< empty: it is read-only
  Fd work;                           ///< beside `upper`
  std::vector<std::string> options;  ///< "userxattr"
  uint64_t attributes = 0;           ///< of the mount: MOUNT_ATTR_*
  unsigned long flags = 0;           ///< the same for mount(2): MS_*
  std::string source = "overlay";    ///< what mount tables show
};

/// Mounts an overlay of `lower`, highest first, at the directory `target` (fd_path() of one, if its
/// path may change) and returns a handle of its root, for the *at() calls. If the kernel takes no
/// detached mount as a layer (before 6.15, or one of a user namespace above this one), they are
/// mounted at `target` until the overlay is made. Errors: denied, busy (another mount writes
/// there), io.  fsconfig(2), else mount(2)
Result<Fd> mount_overlay(const std::vector<Layer>& lower, const OverlayTop& top,
                         const std::string& target);

/// Whether this process can mount a writable overlay below `place`, an empty directory on the file
/// system of the layers; the caller removes what is made there. A user's layers are marked by
/// "user." attributes. For a process without threads.
/// Errors: denied, unsupported, io: the kernel's message.
Result<void> try_overlay(const Fd& place, bool user_attributes);

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
