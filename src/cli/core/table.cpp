// SPDX-License-Identifier: Apache-2.0
#include "cli/core/table.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"
#include "base/text.hpp"

namespace berth::cli {
namespace {

struct Range {
  char32_t first, last;
};

// Unicode 15: the blocks of combining marks that names of images and commands may hold.
constexpr Range kZero[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
    {0x6D6, 0x6DC},   {0x93A, 0x93A},   {0x93C, 0x93C},   {0x941, 0x948},   {0xE31, 0xE31},
    {0xE34, 0xE3A},   {0xE47, 0xE4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x202A, 0x202E}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
// East Asian Width W and F, and emoji.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},  {0x2E80, 0x303E}, {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},  {0xA960, 0xA97F}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool within(const Range (&ranges)[N], char32_t point) {
  auto above = std::ranges::upper_bound(ranges, point, {}, &Range::first);
  return above != std::begin(ranges) && point <= std::prev(above)->last;
}

struct Point {
  size_t bytes = 1;
  size_t columns = 1;
};

Point first_point(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  size_t bytes = lead >= 0xF0 && lead < 0xF8 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (lead >= 0xF8 || bytes == 1 || bytes > text.size()) return {};
  char32_t point = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {};
    point = point << 6 | (byte & 0x3F);
  }
  return {bytes, within(kZero, point) ? size_t{0} : within(kWide, point) ? size_t{2} : size_t{1}};
}

}  // namespace

size_t text_width(std::string_view text) {
  // A fast path: nearly all text is ASCII, and a table needs the width of each cell.
  auto foreign = std::ranges::find_if(text, [](char c) { return (c & 0x80) != 0; });
  auto columns = static_cast<size_t>(foreign - text.begin());
  text.remove_prefix(columns);
  while (!text.empty()) {
    Point point = first_point(text);
    columns += point.columns;
    text.remove_prefix(point.bytes);
  }
  return columns;
}

std::string truncate(std::string_view text, size_t columns) {
  if (text_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  size_t width = 0;
  size_t bytes = 0;
  while (bytes < text.size()) {
    Point point = first_point(text.substr(bytes));
    if (width + point.columns > columns - 1) break;
    width += point.columns;
    bytes += point.bytes;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::vector<std::string> fold(std::string_view text, size_t columns) {
  std::vector<std::string> lines{""};
  for (std::string_view word : split_blank(text)) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (columns != 0 && text_width(line) + 1 + text_width(word) > columns) {
      lines.emplace_back(word);
    } else {
      line += " " + std::string(word);
    }
  }
  return lines;
}

std::string pad_right(std::string_view text, size_t columns) {
  size_t width = text_width(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

std::string pad_left(std::string_view text, size_t columns) {
  size_t width = text_width(text);
  return std::string(columns > width ? columns - width : 0, ' ') + std::string(text);
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
  constexpr size_t kGap = 3;
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
