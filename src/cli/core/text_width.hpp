// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

/// Columns that UTF-8 `text` takes on a terminal: combining marks 0, East Asian wide and emoji 2,
/// every byte that is not UTF-8 1. Locale and wcwidth(3) are not asked: both cost at start.
size_t text_width(std::string_view text);

/// At most `columns` wide; what was cut ends in "…". Zero columns give an empty text.
std::string truncate(std::string_view text, size_t columns);

/// `text` in lines of at most `columns`, folded at blanks; 0: one line. A longer word stays whole.
/// Never empty.
std::vector<std::string> fold(std::string_view text, size_t columns);

/// `text` with blanks up to `columns`; wider text stays as it is.
std::string pad_right(std::string_view text, size_t columns);
std::string pad_left(std::string_view text, size_t columns);

}  // namespace berth::cli
