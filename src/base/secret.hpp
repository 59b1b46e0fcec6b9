// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace berth {

/// Whether two texts are equal, in a time that does not depend on where they differ; their lengths
/// are no secret.
inline bool same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

}  // namespace berth
