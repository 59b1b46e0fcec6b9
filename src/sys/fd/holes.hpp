// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A part of a file.
struct Stretch {
  uint64_t offset = 0;
  uint64_t size = 0;
};
/// What is no hole of the first `size` bytes; all of them where the file system does not tell. The
/// file's position stays as it was. lseek(2) SEEK_DATA
Result<std::vector<Stretch>> data_stretches(const Fd& fd, uint64_t size, const std::string& name);

}  // namespace berth::sys
