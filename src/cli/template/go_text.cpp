// SPDX-License-Identifier: Apache-2.0
#include "cli/template/go_text.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

constexpr size_t kLeast = 10;
constexpr size_t kGap = 3;

/// The width of column `column` at lines[begin]: the width for the block of consecutive lines that
/// have a cell in this column.
size_t block_width(const std::vector<std::vector<std::string_view>>& lines, size_t begin,
                   size_t column, size_t& end) {
  size_t width = kLeast;
  for (end = begin; end < lines.size() && column + 1 < lines[end].size(); ++end) {
    width = std::max(width, text_width(lines[end][column]) + kGap);
  }
  return width;
}

}  // namespace

std::string align_tabs(std::string_view text) {
  std::vector<std::vector<std::string_view>> lines;
  size_t columns = 0;
  for (std::string_view line : split(text, '\n')) {
    lines.push_back(split(line, '\t'));
    columns = std::max(columns, lines.back().size());
  }
  std::vector<std::string> out(lines.size());
  for (size_t column = 0; column < columns; ++column) {
    for (size_t begin = 0; begin < lines.size();) {
      if (column + 1 >= lines[begin].size()) {  // no cell: text after the last tab, or beyond it
        if (column < lines[begin].size()) out[begin] += lines[begin][column];
        ++begin;
        continue;
      }
      size_t end = begin;
      size_t width = block_width(lines, begin, column, end);
      for (; begin < end; ++begin) {
        std::string_view cell = lines[begin][column];
        out[begin].append(cell).append(width - text_width(cell), ' ');
      }
    }
  }
  return join(out, "\n");
}

std::string quote_as_go(std::string_view text) {
  std::string out = "\"";
  constexpr std::string_view kCodes = "\a\b\f\n\r\t\v\\\"";
  constexpr std::string_view kLetters = "abfnrtv\\\"";
  for (char c : text) {
    size_t i = kCodes.find(c);
    if (i != kCodes.npos) {
      out += {'\\', kLetters[i]};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(c));
      out += hex;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace berth::cli
