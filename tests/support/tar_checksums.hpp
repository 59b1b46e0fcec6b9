// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace berth {

/// A tar whose sums are right, which no fuzzer finds.
inline std::string with_checksums(std::string bytes) {
  for (size_t at = 0; at + 512 <= bytes.size();) {
    std::fill_n(bytes.begin() + static_cast<long>(at) + 148, 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[at + i]);
    if (sum == 8 * ' ') break;
    char text[8];
    std::snprintf(text, sizeof text, "%06o", sum);
    bytes.replace(at + 148, 8, std::string(text, 7) + " ");
    uint64_t size = std::strtoull(bytes.substr(at + 124, 12).c_str(), nullptr, 8);
    at += 512 + (std::min<uint64_t>(size, bytes.size()) + 511) / 512 * 512;
  }
  return bytes;
}

}  // namespace berth
