// SPDX-License-Identifier: Apache-2.0
#include "cli/core/progress.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/core/table.hpp"
#include "cli/core/words.hpp"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kRateWindow = 5s;
constexpr auto kSampleEvery = 250ms;
constexpr auto kRedrawEvery = 50ms;
constexpr size_t kIdWidth = 13;     // "0123456789ab:"
constexpr size_t kPhaseWidth = 12;  // "Downloading "
constexpr size_t kWidestBar = 40;
constexpr size_t kNarrowestBar = 8;

bool moves(Phase phase) {
  return phase == Phase::downloading || phase == Phase::uploading || phase == Phase::verifying ||
         phase == Phase::unpacking;
}

bool ended(Phase phase) {
  return phase == Phase::done || phase == Phase::exists;
}

/// The bytes of a layer that have come over the network: all of them while it is checked or
/// unpacked.
uint64_t arrived(const LayerUpdate& layer) {
  switch (layer.phase) {
    case Phase::verifying:
    case Phase::unpacking:
    case Phase::done:
      return layer.total;
    case Phase::exists:
      return 0;
    default:
      return layer.done;
  }
}

/// "[=====>     ]", `columns` wide, including the brackets.
std::string bar(uint64_t done, uint64_t total, size_t columns) {
  size_t inside = columns - 2;
  double part =
      total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  auto filled = static_cast<size_t>(part * static_cast<double>(inside));
  std::string text(filled, '=');
  if (filled < inside) text += '>';
  return "[" + pad_right(text, inside) + "]";
}

/// "12.3MB/45MB  8.1MB/s  4s", or the part of it that fits into `columns`.
std::string figures(uint64_t done, uint64_t total, std::optional<double> rate, size_t columns) {
  std::string text = human_bytes(done);
  if (total != 0) text += "/" + human_bytes(total);
  if (!rate || *rate < 1) return text;
  std::string speed = "  " + human_bytes(static_cast<uint64_t>(*rate)) + "/s";
  if (text.size() + speed.size() > columns) return text;
  text += speed;
  if (total <= done) return text;
  double left = static_cast<double>(total - done) / *rate;
  if (left >= 360000) return text;
  std::string time = "  " + short_duration(std::chrono::seconds(static_cast<int64_t>(left + 0.5)));
  return text.size() + time.size() > columns ? text : text + time;
}

/// `head`, then a bar if the window has room for one, then the figures; never wider than `columns`.
std::string bar_line(const std::string& head, uint64_t done, uint64_t total,
                     std::optional<double> rate, size_t columns) {
  size_t head_width = text_width(head);
  std::string tail = figures(done, total, rate, columns > head_width ? columns - head_width : 0);
  // Keeps room for "999MB/999MB  999MB/s  59m59s", so that bars do not change their width with the
  // figures.
  size_t fixed = head_width + 2 + std::max<size_t>(text_width(tail), 28);
  std::string middle;
  if (total != 0 && columns >= fixed + kNarrowestBar) {
    middle = bar(done, total, std::min(kWidestBar, columns - fixed)) + "  ";
  }
  return truncate(head + middle + tail, columns);
}

}  // namespace

std::string phase_words(Phase phase, Direction direction) {
  switch (phase) {
    case Phase::waiting:
      return direction == Direction::pull ? "Waiting" : "Preparing";
    case Phase::downloading:
      return "Downloading";
    case Phase::verifying:
      return "Verifying";
    case Phase::unpacking:
      return "Extracting";
    case Phase::uploading:
      return "Pushing";
    case Phase::done:
      return direction == Direction::pull ? "Pull complete" : "Pushed";
    case Phase::exists:
      return direction == Direction::pull ? "Already exists" : "Layer already exists";
  }
  return "";
}

void Rate::add(uint64_t done, Clock::time_point now) {
  if (!samples_.empty() && done < samples_.back().done) samples_.clear();  // a retry from the start
  if (samples_.size() >= 2 && now - samples_[samples_.size() - 2].time < kSampleEvery) {
    samples_.back() = {now, done};
  } else {
    samples_.push_back({now, done});
  }
  while (samples_.size() > 2 && now - samples_[1].time > kRateWindow) samples_.pop_front();
}

std::optional<double> Rate::per_second(Clock::time_point now) const {
  if (samples_.size() < 2) return std::nullopt;
  std::chrono::duration<double> passed = now - samples_.front().time;
  if (passed.count() <= 0) return std::nullopt;
  return static_cast<double>(samples_.back().done - samples_.front().done) / passed.count();
}

void ProgressState::update(const LayerUpdate& update, Clock::time_point now) {
  auto layer = std::ranges::find_if(
      layers_, [&](const Layer& known) { return known.update.id == update.id; });
  if (layer == layers_.end()) {
    layers_.emplace_back();
    layer = layers_.end() - 1;
  }
  if (layer->update.phase != update.phase) layer->rate = {};
  layer->update = update;
  if (moves(update.phase)) layer->rate.add(update.done, now);

  uint64_t all = 0;
  for (const Layer& known : layers_) {
    all += arrived(known.update);
  }
  rate_.add(all, now);
}

std::vector<std::string> ProgressState::lines(ScreenSize size, Clock::time_point now) const {
  // The cursor is in the last row, the total in the row above it.
  size_t room = size.rows > 3 ? size.rows - 2 : 1;
  bool fold_ended = layers_.size() > room;
  auto count = [&](auto&& is) {
    return static_cast<size_t>(
        std::ranges::count_if(layers_, [&](const Layer& l) { return is(l.update.phase); }));
  };
  size_t ended_count = count(ended);
  size_t waiting_count = count([](Phase phase) { return phase == Phase::waiting; });
  size_t shown = layers_.size() - ended_count + (ended_count > 0 ? 1 : 0);
  bool fold_waiting = fold_ended && shown > room;

  std::vector<std::string> lines;
  if (fold_ended && ended_count > 0) {
    lines.push_back(truncate(std::to_string(ended_count) + " layers done", size.columns));
  }
  for (const Layer& layer : layers_) {
    if (fold_ended && ended(layer.update.phase)) continue;
    if (fold_waiting && layer.update.phase == Phase::waiting) continue;
    lines.push_back(layer_line(layer, size.columns, now));
  }
  if (fold_waiting && waiting_count > 0) {
    lines.push_back(truncate(std::to_string(waiting_count) + " layers waiting", size.columns));
  }
  if (lines.size() > room) lines.resize(room);
  lines.push_back(total_line(size.columns, now));
  return lines;
}

std::string ProgressState::layer_line(const Layer& layer, size_t columns,
                                      Clock::time_point now) const {
  const LayerUpdate& update = layer.update;
  std::string head = pad_right(update.id + ":", kIdWidth) + " ";
  std::string words = phase_words(update.phase, direction_);
  if (!moves(update.phase)) return truncate(head + words, columns);
  return bar_line(head + pad_right(words, kPhaseWidth), update.done, update.total,
                  layer.rate.per_second(now), columns);
}

std::string ProgressState::total_line(size_t columns, Clock::time_point now) const {
  uint64_t done = 0;
  uint64_t total = 0;
  size_t finished = 0;
  for (const Layer& layer : layers_) {
    if (ended(layer.update.phase)) ++finished;
    if (layer.update.phase != Phase::exists) total += layer.update.total;
    done += arrived(layer.update);
  }
  std::string head = pad_right(
      "Total " + std::to_string(finished) + "/" + std::to_string(layers_.size()) + " layers",
      kIdWidth + 1 + kPhaseWidth);
  std::optional<double> rate = finished < layers_.size() ? rate_.per_second(now) : std::nullopt;
  return bar_line(head, done, total, rate, columns);
}

ProgressPrinter::ProgressPrinter(Terminal& terminal, Stream stream, Direction direction, Mode mode)
    : terminal_(terminal),
      stream_(stream),
      direction_(direction),
      mode_(mode),
      state_(direction),
      bars_(terminal, stream) {}

void ProgressPrinter::layer(const LayerUpdate& update, Clock::time_point now) {
  if (mode_ == Mode::quiet) return;
  if (mode_ == Mode::bars) {
    state_.update(update, now);
    tick(now);
    return;
  }
  // A log shows events instead of progress: the beginning and the end of each layer.
  auto known = std::ranges::find(printed_, update.id, &LayerUpdate::id);
  bool first = known == printed_.end();
  if (!first && (ended(known->phase) || !ended(update.phase))) return;
  if (first) known = printed_.insert(printed_.end(), update);
  known->phase = update.phase;
  std::string begin = direction_ == Direction::pull ? "Pulling fs layer" : "Preparing";
  terminal_.write(stream_,
                  escape_controls(update.id) + ": " +
                      (ended(update.phase) ? phase_words(update.phase, direction_) : begin) + "\n");
}

void ProgressPrinter::text(std::string_view line) {
  if (mode_ == Mode::quiet) return;
  bars_.aside([&] { terminal_.write(stream_, escape_controls(line) + "\n"); });
}

void ProgressPrinter::tick(Clock::time_point now) {
  if (mode_ != Mode::bars || state_.empty()) return;
  if (drawn_at_ && now - *drawn_at_ < kRedrawEvery) return;
  draw(now);
}

void ProgressPrinter::finish(Clock::time_point now) {
  if (mode_ == Mode::bars && !state_.empty()) draw(now);
  mode_ = Mode::quiet;
}

void ProgressPrinter::draw(Clock::time_point now) {
  bars_.draw(state_.lines(bars_.room(), now));
  drawn_at_ = now;
}

ProgressPrinter::Mode progress_mode(const Terminal& terminal, Stream stream, bool quiet) {
  if (quiet) return ProgressPrinter::Mode::quiet;
  return terminal.is_terminal(stream) ? ProgressPrinter::Mode::bars : ProgressPrinter::Mode::lines;
}

}  // namespace berth::cli
