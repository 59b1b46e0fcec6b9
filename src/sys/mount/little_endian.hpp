// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::sys {

/// The little-endian number of `width` bytes, at most 8, at `offset`; all of them have to be in
/// `bytes`.
inline uint64_t little_endian(std::string_view bytes, size_t offset, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

}  // namespace berth::sys
