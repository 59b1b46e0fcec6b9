// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/core/terminal.hpp"

namespace berth::cli {

/// The terminal rows of `lines` after the window became `columns` wide.
size_t rows_taken(const std::vector<std::string>& lines, size_t columns);

/// Lines at the end of a terminal's output that are redrawn. The cursor is below them and visible
/// at all times, so that nothing has to be restored when the program is killed.
class LiveLines {
 public:
  LiveLines(Terminal& terminal, Stream stream) : terminal_(terminal), stream_(stream) {}

  /// The available size: one column less than the window, because terminals disagree on the cursor
  /// position after a full line.
  ScreenSize room() const;
  /// None of `lines` is wider than room().
  void draw(std::vector<std::string> lines);
  /// Removes them while `write` prints lines there, on either stream.
  void aside(const std::function<void()>& write);

 private:
  Terminal& terminal_;
  Stream stream_;
  std::vector<std::string> drawn_;
};

}  // namespace berth::cli
