// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth {
/// Prints the failed condition and its source location to stderr, and aborts. For our bugs, never
/// for input.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace berth

#define BERTH_ASSERT(condition)                                                  \
  do {                                                                           \
    if (!(condition)) ::berth::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
