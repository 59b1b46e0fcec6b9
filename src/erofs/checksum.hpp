// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::erofs {

/// CRC32C as a superblock has it: begun with all ones, and not inverted at the end.
uint32_t checksum(std::string_view bytes);

}  // namespace berth::erofs
