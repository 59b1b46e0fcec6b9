// SPDX-License-Identifier: Apache-2.0
#include "bench/pooling/pooling.hpp"

#include <gtest/gtest.h>

namespace berth::bench {
namespace {

/// One pass, as the founding document says it: nothing clever.
std::vector<float> plainly_pooled(const std::vector<float>& matrix, int64_t side) {
  std::vector<float> pooled(matrix.size());
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t column = 0; column < side; ++column) {
      double sum = 0;
      int count = 0;
      auto add = [&](int64_t r, int64_t c) {
        if (r < 0 || r >= side || c < 0 || c >= side) return;
        sum += static_cast<double>(matrix[static_cast<size_t>(r * side + c)]);
        ++count;
      };
      add(row, column - 1);
      add(row, column + 1);
      add(row - 1, column);
      add(row + 1, column);
      pooled[static_cast<size_t>(row * side + column)] = static_cast<float>(sum / count);
    }
  }
  return pooled;
}

class Pooling : public ::testing::TestWithParam<int64_t> {};

TEST_P(Pooling, is_the_mean_of_the_neighbours_that_there_are) {
  int64_t side = GetParam();
  auto matrix = first_matrix(side);
  auto expected = matrix;
  for (int pass = 0; pass < 3; ++pass) expected = plainly_pooled(expected, side);
  pool(matrix, side, 3, 1);
  for (size_t place = 0; place < matrix.size(); ++place) {
    ASSERT_NEAR(matrix[place], expected[place], 1e-6) << "at " << place;
  }
}

TEST_P(Pooling, is_the_same_to_the_bit_on_any_number_of_threads) {
  int64_t side = GetParam();
  auto alone = first_matrix(side);
  pool(alone, side, 5, 1);
  for (size_t threads : {2, 3, 7}) {
    auto matrix = first_matrix(side);
    pool(matrix, side, 5, threads);
    EXPECT_EQ(matrix, alone) << threads << " threads";
    EXPECT_EQ(checksum(matrix), checksum(alone));
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, Pooling, ::testing::Values(2, 3, 17, 64));

}  // namespace
}  // namespace berth::bench
