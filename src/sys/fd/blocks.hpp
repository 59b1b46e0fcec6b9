// SPDX-License-Identifier: Apache-2.0
// Files that share blocks of the disk (reflinks).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

enum class Shared {
  yes,
  differ,  ///< the files do not have the same bytes
};

/// Makes `to` share the blocks of `from`, if both have the same `size` bytes: the kernel compares
/// them. The inode and times of `to` stay, even if it is open elsewhere. The owner needs no write
/// permission for `to`.
/// Errors: unsupported (the file system cannot), denied, io.  ioctl_fideduperange(2)
Result<Shared> share_blocks(const Fd& from, const Fd& to, uint64_t size, const std::string& name);

/// Whether the two share their blocks. False for files without blocks, or if unknown.
/// ioctl_fiemap(2)
bool have_same_blocks(const Fd& one, const Fd& other);

}  // namespace berth::sys
