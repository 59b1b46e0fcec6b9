// SPDX-License-Identifier: Apache-2.0
#include "cli/core/terminal.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {

size_t rows_taken(const std::vector<std::string>& lines, size_t columns) {
  size_t rows = 0;
  for (const std::string& line : lines) {
    size_t width = std::max<size_t>(1, text_width(line));
    rows += columns == 0 ? 1 : (width + columns - 1) / columns;
  }
  return rows;
}

ScreenSize LiveLines::room() const {
  ScreenSize size = terminal_.size(stream_);
  if (size.columns > 1) --size.columns;
  return size;
}

void LiveLines::draw(std::vector<std::string> lines) {
  for (std::string& line : lines) line = escape_controls(line);
  // One write per frame, in which each line is overwritten and its rest erased, does not flicker.
  std::string frame;
  if (!drawn_.empty()) {
    size_t rows = rows_taken(drawn_, terminal_.size(stream_).columns);
    frame = "\x1b[" + std::to_string(rows) + "A\r";
  }
  for (const std::string& line : lines) frame += line + "\x1b[K\n";
  frame += "\x1b[J";
  terminal_.write_as_is(stream_, frame);
  drawn_ = std::move(lines);
}

void LiveLines::aside(const std::function<void()>& write) {
  std::vector<std::string> lines = std::exchange(drawn_, {});
  if (!lines.empty()) {
    size_t rows = rows_taken(lines, terminal_.size(stream_).columns);
    terminal_.write_as_is(stream_, "\x1b[" + std::to_string(rows) + "A\r\x1b[J");
  }
  write();
  if (!lines.empty()) draw(std::move(lines));
}

}  // namespace berth::cli
