// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bench/common/both.hpp"

namespace berth::bench {

/// A number of 0 to 1 that depends on `place` and `seed` alone, on a GPU too.
/// Source: the finalizer of MurmurHash3 (public domain), whose 24 highest bits make the number.
BENCH_BOTH inline float noise(uint32_t place, uint32_t seed) {
  uint32_t bits = place * 0x9e3779b1U + seed * 0x85ebca77U;
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bU;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35U;
  bits ^= bits >> 16;
  return static_cast<float>(bits >> 8) / 16777216.0F;
}

}  // namespace berth::bench
