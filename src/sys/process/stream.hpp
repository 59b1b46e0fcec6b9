// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Reads what there is into `buffer` and gives the number of bytes, 0 at the end. The other side of
/// a terminal that hung up counts as the end.
/// Errors: busy (a non-blocking descriptor has nothing now), io. read(2)
Result<size_t> read_some(const Fd& fd, std::span<char> buffer, const std::string& name);

/// Writes as much of `bytes` as goes at once and gives how many that was.
/// Errors: busy (a non-blocking descriptor takes nothing now), io. write(2)
Result<size_t> write_some(const Fd& fd, std::string_view bytes, const std::string& name);

/// Writes `first` and then `second`, all of both or fails; with one call where that does it.
/// writev(2)
Result<void> write_both(const Fd& fd, std::string_view first, std::string_view second,
                        const std::string& name);

/// Copies what is left of the file `from`, inside the file system where it can. copy_file_range(2)
Result<void> copy_rest(const Fd& from, const Fd& to, const std::string& name);

/// Reads and writes of `fd` return at once from now on. fcntl(2) F_SETFL
Result<void> set_nonblocking(const Fd& fd);

}  // namespace berth::sys
