// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace berth::sys {

/// The null-terminated list for execve(2); it points into `strings`.
inline std::vector<char*> arguments(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace berth::sys
