// SPDX-License-Identifier: Apache-2.0
// The table of known errors, in parts. A new known error needs a row, and a message in
// tests/data/known errors.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "known_error/find.hpp"

namespace berth::known_error {

// Strings that rows of several parts share.
inline constexpr std::string_view kLowerLevel =
    "a build for a lower x86-64 level, or another machine";
inline constexpr std::string_view kRocmCode =
    "a build for this GPU's gfx target (rocminfo shows it)";

// Makes a row of each level.
using Patterns = std::vector<std::string_view>;
inline Row cause(std::string_view id, Patterns patterns, std::string_view why,
                 std::string_view remedy, uint32_t cuda = 0) {
  return {id, Level::cause, std::move(patterns), why, remedy, cuda};
}
inline Row effect(std::string_view id, Patterns patterns, std::string_view why,
                  std::string_view remedy, uint32_t cuda = 0, uint32_t old_cuda = 0) {
  return {id, Level::effect, std::move(patterns), why, remedy, cuda, old_cuda};
}
inline Row sign(std::string_view id, Patterns patterns, std::string_view why,
                std::string_view remedy) {
  return {id, Level::sign, std::move(patterns), why, remedy};
}

std::vector<Row> rows_of_gpu();
std::vector<Row> rows_of_program();
std::vector<Row> rows_of_system();

}  // namespace berth::known_error
