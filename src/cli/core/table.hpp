// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

/// The number of columns of UTF-8 `text` on a terminal: 0 for combining marks, 2 for East Asian
/// wide characters and emoji, 1 for each invalid byte. Does not use wcwidth(3), because setting the
/// locale costs time at start.
size_t text_width(std::string_view text);

/// At most `columns` wide; a truncated text ends in "…". Zero columns give an empty text.
std::string truncate(std::string_view text, size_t columns);

/// `text` in lines of at most `columns`, folded at blanks; 0: one line. A longer word stays whole.
/// Never empty.
std::vector<std::string> fold(std::string_view text, size_t columns);

/// `text` padded with blanks to `columns`; wider text is unchanged.
std::string pad_right(std::string_view text, size_t columns);
std::string pad_left(std::string_view text, size_t columns);

/// A table for people, formatted as docker's: titles in capitals, three blanks between columns, no
/// trailing blanks. Control characters in cells are escaped: most cells contain foreign text.
class Table {
 public:
  explicit Table(std::vector<std::string_view> titles);

  /// Shape: as many cells as titles.
  void add(std::vector<std::string> cells);

  /// All lines, the titles first.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// One line "Title: value" for each property of a single object, the values aligned.
std::string property_list(const std::vector<std::pair<std::string, std::string>>& properties);

}  // namespace berth::cli
