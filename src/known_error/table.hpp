// SPDX-License-Identifier: Apache-2.0
// The table of known errors, in parts. A new one is a row and a message in tests/data/known errors.
#pragma once

#include <string_view>
#include <vector>

#include "known_error/find.hpp"

namespace berth::known_error {

// Texts that rows of several parts share.
inline constexpr std::string_view kLowerLevel =
    "a build for a lower x86-64 level, or another machine";
inline constexpr std::string_view kRocmCode =
    "a build for this GPU's gfx target (rocminfo shows it)";

std::vector<Row> rows_of_gpu();
std::vector<Row> rows_of_program();
std::vector<Row> rows_of_system();

}  // namespace berth::known_error
