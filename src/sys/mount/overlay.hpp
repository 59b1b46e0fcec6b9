// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/layer.hpp"

namespace berth::sys {

/// What an overlay has beside its lower layers. By handle: names of any length and with any
/// character fit then, and a container's mount table does not show the host's paths.
struct OverlayTop {
  Fd upper;                          ///< empty: it is read-only
  Fd work;                           ///< beside `upper`
  std::vector<std::string> options;  ///< "userxattr"
  uint64_t attributes = 0;           ///< of the mount: MOUNT_ATTR_*
  unsigned long flags = 0;           ///< the same for mount(2): MS_*
  std::string source = "overlay";    ///< what mount tables show
};

/// Mounts an overlay of `lower`, highest first, at the directory `target` (fd_path() of one, where
/// its name may come to mean another) and gives a handle of its root, a place for the *at() calls.
/// Where the kernel takes no detached mount as a layer (before 6.15, or one of a user namespace
/// above this one) they are mounted at `target` until the overlay is made. Errors: denied, busy
/// (another mount writes there), io.  fsconfig(2), else mount(2)
Result<Fd> mount_overlay(const std::vector<Layer>& lower, const OverlayTop& top,
                         const std::string& target);

/// Whether this process can mount an overlay that is written to below `place`, an empty directory
/// on a file system where layers lie; what is made there is left to the caller. A user's layers
/// are marked by "user." attributes. For a process without threads.
/// Errors: denied, unsupported, io: the kernel's words.
Result<void> try_overlay(const Fd& place, bool user_attributes);

}  // namespace berth::sys
