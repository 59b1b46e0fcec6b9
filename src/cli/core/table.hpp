// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

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

/// "NAME  VALUE" lines for a single object: titles padded to one width, "Title:  value".
std::string property_list(const std::vector<std::pair<std::string, std::string>>& properties);

}  // namespace berth::cli
