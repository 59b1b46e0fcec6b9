// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bench/common/both.hpp"

namespace berth::bench {

/// The mean of those neighbours, left, right, above and below, that the element has.
/// Shape: side × side elements, row by row, at least 2 × 2.
BENCH_BOTH inline float mean_of_neighbours(const float* matrix, int64_t side, int64_t row,
                                           int64_t column) {
  const float* here = matrix + row * side + column;
  float sum = 0;
  int count = 0;
  if (column > 0) sum += here[-1], ++count;
  if (column < side - 1) sum += here[1], ++count;
  if (row > 0) sum += here[-side], ++count;
  if (row < side - 1) sum += here[side], ++count;
  return sum / static_cast<float>(count);
}

}  // namespace berth::bench
