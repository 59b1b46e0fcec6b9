// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/core/terminal.hpp"

/// The progress of a pull or push. ProgressState is pure (events and a clock in, lines out);
/// ProgressPrinter prints the lines on a terminal or a pipe.
namespace berth::cli {

using Clock = std::chrono::steady_clock;

enum class Phase { waiting, downloading, verifying, unpacking, uploading, done, exists };

enum class Direction { pull, push };
/// The phases in docker's words: "Downloading", "Pull complete", "Already exists".
std::string phase_words(Phase phase, Direction direction);

struct LayerUpdate {
  std::string id;  ///< 12 digits
  Phase phase = Phase::waiting;
  uint64_t done = 0;   ///< bytes
  uint64_t total = 0;  ///< bytes; 0: unknown
};

/// Bytes per second, averaged over the last few seconds.
class Rate {
 public:
  void add(uint64_t done, Clock::time_point now);
  std::optional<double> per_second(Clock::time_point now) const;

 private:
  struct Sample {
    Clock::time_point time;
    uint64_t done;
  };
  std::deque<Sample> samples_;
};

class ProgressState {
 public:
  explicit ProgressState(Direction direction) : direction_(direction) {}

  void update(const LayerUpdate& update, Clock::time_point now);
  bool empty() const { return layers_.empty(); }

  /// The lines for a terminal of `size`: one per layer and one for the total, none wider than the
  /// window. If the window is too low, finished layers are folded into one line, then waiting ones.
  std::vector<std::string> lines(ScreenSize size, Clock::time_point now) const;

 private:
  struct Layer {
    LayerUpdate update;
    Rate rate;
  };
  std::string layer_line(const Layer& layer, size_t columns, Clock::time_point now) const;
  std::string total_line(size_t columns, Clock::time_point now) const;

  Direction direction_;
  std::vector<Layer> layers_;
  Rate rate_;
};

/// Bars on a terminal (at most 20 times a second), one line per finished step on a pipe, nothing
/// when quiet.
class ProgressPrinter {
 public:
  enum class Mode { bars, lines, quiet };

  ProgressPrinter(Terminal& terminal, Stream stream, Direction direction, Mode mode);
  ProgressPrinter(ProgressPrinter&&) = delete;
  ~ProgressPrinter() { finish(); }

  void layer(const LayerUpdate& update, Clock::time_point now = Clock::now());
  /// Prints a permanent line above the bars.
  void text(std::string_view line);
  /// The bars, for a caller that prints other lines above them.
  LiveLines& bars() { return bars_; }
  /// Call when time has passed without an event, so that the displayed rates fall.
  void tick(Clock::time_point now = Clock::now());
  /// Draws the last state; later output starts below the bars.
  void finish(Clock::time_point now = Clock::now());

 private:
  void draw(Clock::time_point now);

  Terminal& terminal_;
  Stream stream_;
  Direction direction_;
  Mode mode_;
  ProgressState state_;
  std::vector<LayerUpdate> printed_;  ///< with Mode::lines: the phase last printed for each layer
  LiveLines bars_;
  std::optional<Clock::time_point> drawn_at_;
};

/// Bars on a terminal, lines elsewhere, nothing when quiet.
ProgressPrinter::Mode progress_mode(const Terminal& terminal, Stream stream, bool quiet);

}  // namespace berth::cli
