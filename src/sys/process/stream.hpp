// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Reads available bytes into `buffer` and returns their number, 0 at the end. The hangup of a
/// terminal's other side counts as the end.
/// Errors: busy (a non-blocking descriptor has nothing now), io. read(2)
Result<size_t> read_some(const Fd& fd, std::span<char> buffer, const std::string& name);

/// Writes as much of `bytes` as one call takes and returns the number.
/// Errors: busy (a non-blocking descriptor takes nothing now), io. write(2)
Result<size_t> write_some(const Fd& fd, std::string_view bytes, const std::string& name);

/// Writes all of `first` and then all of `second`, or fails; with one call if possible. writev(2)
Result<void> write_both(const Fd& fd, std::string_view first, std::string_view second,
                        const std::string& name);

/// Copies the rest of the file `from`; the file system does the copying if it can.
/// copy_file_range(2)
Result<void> copy_rest(const Fd& from, const Fd& to, const std::string& name);

/// Makes reads and writes of `fd` non-blocking. fcntl(2) F_SETFL
Result<void> set_nonblocking(const Fd& fd);

}  // namespace berth::sys
