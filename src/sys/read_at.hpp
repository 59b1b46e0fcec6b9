// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// Up to `length` bytes from `offset`; fewer only at the end of the file. `name` is for errors.
/// pread(2)
Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name);

}  // namespace berth::sys
