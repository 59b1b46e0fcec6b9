// SPDX-License-Identifier: Apache-2.0
#include "erofs/format.hpp"

namespace berth::erofs {

uint32_t checksum(std::string_view bytes) {
  constexpr uint32_t kCastagnoli = 0x82f6'3b78;
  // Bit by bit is fast enough: the input has three kilobytes, once for each image.
  uint32_t sum = 0xffff'ffff;
  for (char byte : bytes) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? kCastagnoli : 0);
  }
  return sum;
}

}  // namespace berth::erofs
