// SPDX-License-Identifier: Apache-2.0
// Files that have the same bytes on the same blocks of the disk.
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

/// Gives `to` the blocks of `from`, as far as both have the same `size` bytes: the kernel compares
/// them. Neither its inode nor any time changes, whoever has it open. `to` needs no right to write
/// but the owner's.
/// Errors: unsupported (the file system cannot), denied, io.  ioctl_fideduperange(2)
Result<Shared> share_blocks(const Fd& from, const Fd& to, uint64_t size, const std::string& name);

/// Whether the two lie on the same blocks. What lies on none, or cannot be told, does not.
/// ioctl_fiemap(2)
bool have_same_blocks(const Fd& one, const Fd& other);

}  // namespace berth::sys
