// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bench {

/// A flag that takes a whole number of `lowest` to `highest`, or one of `choices`, or any text.
struct Flag {
  const char* name;
  uint64_t* number = nullptr;
  uint64_t lowest = 0, highest = 0;
  std::string* text = nullptr;
  std::vector<std::string_view> choices = {};
};

/// Reads "--name VALUE" and "--name=VALUE" into the flags.
/// Errors: usage (unknown flag, no value, a value that the flag does not take, any other word).
Result<void> parse(int argc, char** argv, const std::vector<Flag>& flags);

/// The exit status of a program: 0, or one error line on stderr and 2 (usage) or 1 (all else,
/// exceptions of the GPU's libraries included).
int exit_status(std::string_view program, const std::function<Result<void>()>& body);

}  // namespace berth::bench
