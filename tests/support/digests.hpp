// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/digest.hpp"

namespace berth::test {

/// A digest of nothing, the same for the same seed: for what does not look at content.
inline Digest made_digest(const std::string& seed) {
  std::string hex;
  for (size_t i = 0; hex.size() < 64; ++i) {
    hex += "0123456789abcdef"[(seed[i % seed.size()] + i * 7) % 16];
  }
  return *Digest::parse("sha256:" + hex);
}

}  // namespace berth::test
