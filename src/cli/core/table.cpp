// SPDX-License-Identifier: Apache-2.0
#include "cli/core/table.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "cli/core/text_width.hpp"

namespace berth::cli {
namespace {
constexpr size_t kGap = 3;
}

Table::Table(std::vector<std::string_view> titles) {
  rows_.emplace_back(titles.begin(), titles.end());
}

void Table::add(std::vector<std::string> cells) {
  BERTH_ASSERT(cells.size() == rows_[0].size());
  for (std::string& cell : cells) cell = escape_controls(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += pad_right(row[i], widths[i] + kGap);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string property_list(const std::vector<std::pair<std::string, std::string>>& properties) {
  size_t widest = 0;
  for (const auto& [title, value] : properties) widest = std::max(widest, text_width(title));
  std::string text;
  for (const auto& [title, value] : properties) {
    text += pad_right(title + ":", widest + 3) + escape_controls(value) + "\n";
  }
  return text;
}

}  // namespace berth::cli
