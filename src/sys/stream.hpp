// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// Reads what there is into `buffer` and gives the number of bytes, 0 at the end. The other side of
/// a terminal that hung up counts as the end.
/// Errors: busy (a non-blocking descriptor has nothing now), io. read(2)
Result<size_t> read_some(const Fd& fd, std::span<char> buffer, const std::string& name);

/// Reads and writes of `fd` return at once from now on. fcntl(2) F_SETFL
Result<void> set_nonblocking(const Fd& fd);

}  // namespace berth::sys
