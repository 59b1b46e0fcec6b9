// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace berth::bench {

/// Shape: at least one value.
double mean(const std::vector<double>& values);

/// The deviation of a sample (divided by one less than there are); 0 of a single value.
double deviation(const std::vector<double>& values);

/// The value below which `share` (0 to 1) of them lie, between two neighbours in proportion.
/// Shape: at least one value.
double quantile(std::vector<double> values, double share);

}  // namespace berth::bench
