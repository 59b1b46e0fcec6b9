// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/sif.hpp"

namespace berth::sys {

/// Mounts the squashfs in a part of the file `image`, read-only and detached. Root of the machine:
/// by the kernel, which parses it, so `image` must be root's and not writable for others; through
/// FUSE if the kernel lacks squashfs or loop devices. Other users: through FUSE, by Debian's
/// squashfuse.
/// Errors: denied, not_found (no squashfuse), corrupt, io; those of mount_fuse().
Result<Fd> mount_squashfs(const Fd& image, const Extent& part, const std::string& path);

}  // namespace berth::sys
