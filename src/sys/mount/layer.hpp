// SPDX-License-Identifier: Apache-2.0
// Lower layers of a root file system: directories, and read-only images in a file.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// One lower layer by handle.
struct Layer {
  Fd root;  ///< a directory or the root of an image; the latter only for *at() calls
  /// `root` is the root of a detached mount, which no mount table shows and which ends when the
  /// handle is closed.
  bool detached = false;
};

enum class ErofsWay {
  kernel,  ///< for root of the machine
  fuse,    ///< for all other users, and for root if the kernel has no EROFS: berth-erofs
};
/// How this process can mount EROFS images.
/// Errors: not_found (no berth-erofs, no /dev/fuse), denied.
Result<ErofsWay> check_erofs();

/// Mounts the image in the file `path`, detached. EROFS is mounted by the kernel for root, by the
/// first method that the kernel has; otherwise through FUSE, with overlay marks as "user.overlay."
/// attributes. A squashfs, also one in a SIF, is mounted by mount_squashfs(). Nothing if `path` is
/// a directory. A file that the kernel parses must belong to root or the effective user, and no
/// other user may have write permission; links are not followed. For a process without threads.
/// Errors: those of mount_fuse() and identify_image(); unsupported (not on this kernel); corrupt;
/// not_found; denied.
Result<std::optional<Fd>> mount_image(const std::string& path);

/// Opens a directory, or mounts the image in a file.  Errors: those of mount_image().
Result<Layer> open_layer(const std::string& path);

}  // namespace berth::sys
