// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/berth/common.hpp"
#include "cli/core/live_lines.hpp"

namespace berth::cli {

/// Shows the progress of a command in one line of a terminal's standard error, below the warnings:
/// for a layer "0123456789ab: Converting 12MB of 300MB", otherwise the text of the last status
/// event. Prints nothing if standard error is no terminal.
class WorkDisplay {
 public:
  /// `words`: the operation on layers.
  WorkDisplay(Session& session, std::string words, bool quiet);
  ~WorkDisplay();
  WorkDisplay(WorkDisplay&&) = delete;

  engine::Progress progress();
  /// Removes the line.
  void finish();

 private:
  void draw(const std::string& line);

  Session& session_;
  std::string words_;
  bool shown_;
  LiveLines lines_;
  std::optional<std::chrono::steady_clock::time_point> drawn_at_;
};

}  // namespace berth::cli
