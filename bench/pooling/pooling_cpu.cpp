// SPDX-License-Identifier: Apache-2.0
#include "bench/common/threads.hpp"
#include "bench/pooling/mean.hpp"
#include "bench/pooling/pooling.hpp"

namespace berth::bench {
namespace {

/// mean_of_neighbours() of a whole row; where all four are there, without asking for each.
void pool_row(const float* from, float* to, int64_t side, int64_t row) {
  const float* here = from + row * side;
  float* out = to + row * side;
  out[0] = mean_of_neighbours(from, side, row, 0);
  int64_t column = 1;
  if (row > 0 && row < side - 1) {
    for (; column < side - 1; ++column) {
      out[column] =
          (here[column - 1] + here[column + 1] + here[column - side] + here[column + side]) / 4;
    }
  }
  for (; column < side; ++column) out[column] = mean_of_neighbours(from, side, row, column);
}

}  // namespace

const char* const kPoolingDevice = "cpu";

void pool(std::vector<float>& matrix, int64_t side, uint64_t passes, size_t thread_count) {
  Threads threads(thread_count);
  std::vector<float> other(matrix.size());
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const float* from = matrix.data();
    float* to = other.data();
    threads.share(side, 1, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) pool_row(from, to, side, row);
    });
    matrix.swap(other);
  }
}

}  // namespace berth::bench
