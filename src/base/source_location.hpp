// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth {

/// The place in our source where an error was made. std::source_location does not exist for clang
/// 14 with g++ 12's library, so this is an equivalent with built-ins that both compilers have.
struct SourceLocation {
  const char* file = "";
  int line = 0;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return SourceLocation{file, line};
  }
};

}  // namespace berth
