// SPDX-License-Identifier: Apache-2.0
// Reads and writes at an offset, without moving the file's position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// At most `size` bytes into `buffer`; 0 at the end of the file. pread(2)
Result<size_t> read_at(const Fd& fd, uint64_t offset, char* buffer, size_t size,
                       const std::string& name);

/// Up to `length` bytes from `offset`; fewer only at the end of the file.
Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name);

/// Writes everything or fails. pwrite(2)
Result<void> write_at(const Fd& fd, uint64_t offset, std::string_view bytes,
                      const std::string& name);

/// Makes the file at least `size` bytes long, with blocks for all of them, and keeps its content;
/// does nothing where the file system cannot reserve blocks.
/// Errors: io (no room, a limit). fallocate(2)
Result<void> reserve(const Fd& fd, uint64_t size, const std::string& name);

/// ftruncate(2)
Result<void> truncate(const Fd& fd, uint64_t size, const std::string& name);

}  // namespace berth::sys
