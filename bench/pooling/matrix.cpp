// SPDX-License-Identifier: Apache-2.0
#include "bench/common/noise.hpp"
#include "bench/pooling/pooling.hpp"

namespace berth::bench {

std::vector<float> first_matrix(int64_t side) {
  std::vector<float> matrix(static_cast<size_t>(side * side));
  for (size_t place = 0; place < matrix.size(); ++place) {
    matrix[place] = noise(static_cast<uint32_t>(place), 1);
  }
  return matrix;
}

double checksum(const std::vector<float>& matrix) {
  double sum = 0;
  for (float element : matrix) sum += static_cast<double>(element);
  return sum;
}

}  // namespace berth::bench
