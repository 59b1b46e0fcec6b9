// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/core/terminal.hpp"

namespace berth::cli {

/// Terminal rows that `lines` take after the window became `columns` wide.
size_t rows_taken(const std::vector<std::string>& lines, size_t columns);

/// Lines at the end of what a terminal shows that are drawn over and over. The cursor is below them
/// and visible at all times, so that nothing has to be restored when the program is killed.
class LiveLines {
 public:
  LiveLines(Terminal& terminal, Stream stream) : terminal_(terminal), stream_(stream) {}

  /// What fits: one column less than the window, for a line as wide as that leaves the cursor in a
  /// place that terminals disagree on.
  ScreenSize room() const;
  /// None of `lines` is wider than room().
  void draw(std::vector<std::string> lines);
  /// Takes them away while `write` puts lines there, on whichever stream.
  void aside(const std::function<void()>& write);

 private:
  Terminal& terminal_;
  Stream stream_;
  std::vector<std::string> drawn_;
};

}  // namespace berth::cli
