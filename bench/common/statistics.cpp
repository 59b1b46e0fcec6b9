// SPDX-License-Identifier: Apache-2.0
#include "bench/common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berth::bench {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double middle = mean(values), sum = 0;
  for (double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  double place = share * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace berth::bench
