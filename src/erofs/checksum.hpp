// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::erofs {

/// The CRC32C of a superblock: initialised with all ones, and not inverted at the end.
uint32_t checksum(std::string_view bytes);

}  // namespace berth::erofs
