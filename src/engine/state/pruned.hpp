// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::engine {

struct Pruned {
  std::vector<std::string> names;  ///< in the order of their removal
  uint64_t bytes = 0;              ///< freed on the disk
};

}  // namespace berth::engine
