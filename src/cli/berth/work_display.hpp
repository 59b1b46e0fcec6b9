// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/berth/common.hpp"
#include "cli/core/live_lines.hpp"

namespace berth::cli {

/// How far a work is, in one line of a terminal's standard error: of a layer "0123456789ab:
/// Converting 12MB of 300MB", else what the work says of itself. Nothing elsewhere: who reads a
/// pipe is told the end. Warnings appear above it.
class WorkDisplay {
 public:
  /// `words`: what is done to layers.
  WorkDisplay(Session& session, std::string words, bool quiet);
  ~WorkDisplay();
  WorkDisplay(const WorkDisplay&) = delete;
  WorkDisplay& operator=(const WorkDisplay&) = delete;

  engine::Progress progress();
  /// Takes the line away.
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
