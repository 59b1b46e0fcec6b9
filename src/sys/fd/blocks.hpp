// SPDX-License-Identifier: Apache-2.0
// Blocks of files: those that files share (reflinks), and those that hold data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

enum class Shared {
  yes,
  differ,  ///< the files do not have the same bytes
};

/// Makes `to` share the blocks of `from`, if the first `size` bytes of both are equal, which the
/// kernel checks. The inode and times of `to` stay, even if the file is open elsewhere. The owner
/// of the file needs no write permission for `to`.
/// Errors: unsupported (the file system cannot), denied, io.  ioctl_fideduperange(2)
Result<Shared> share_blocks(const Fd& from, const Fd& to, uint64_t size, const std::string& name);

/// Whether the two files share their blocks. False for files without blocks, or if unknown.
/// ioctl_fiemap(2)
bool have_same_blocks(const Fd& one, const Fd& other);

/// A range of a file.
struct Stretch {
  uint64_t offset = 0;
  uint64_t size = 0;
};
/// The data ranges of the first `size` bytes; all of them if the file system does not report holes.
/// The file's position does not change. lseek(2) SEEK_DATA
Result<std::vector<Stretch>> data_stretches(const Fd& fd, uint64_t size, const std::string& name);

}  // namespace berth::sys
