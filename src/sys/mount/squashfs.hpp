// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/sif.hpp"

namespace berth::sys {

/// Mounts the squashfs that is a part of the file that `image` is open at, read-only and detached.
/// Root of the machine: by the kernel, which parses it, so `image` must be root's and nobody else
/// may write to it; through FUSE where the kernel lacks squashfs or loop devices. Anybody else:
/// through FUSE, by Debian's squashfuse.
/// Errors: denied, not_found (no squashfuse), corrupt, io; those of mount_fuse().
Result<Fd> mount_squashfs(const Fd& image, const Extent& part, const std::string& path);

}  // namespace berth::sys
