// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace berth::policy {

/// The lower of two limits, of which 0 and negative values are none: for rules with a maximum.
template <class T>
T lower_limit(T a, T b) {
  auto of = [](T value) {
    return value > 0 ? static_cast<uint64_t>(value) : std::numeric_limits<uint64_t>::max();
  };
  return of(b) < of(a) ? b : a;
}

}  // namespace berth::policy
