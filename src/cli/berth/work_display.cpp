// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/work_display.hpp"

#include "base/text.hpp"
#include "cli/core/text_width.hpp"

namespace berth::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(50);

}  // namespace

WorkDisplay::WorkDisplay(Session& session, std::string words, bool quiet)
    : session_(session),
      words_(std::move(words)),
      shown_(!quiet && session.terminal.is_terminal(Stream::err)),
      lines_(session.terminal, Stream::err) {
  if (shown_) session_.report.above(&lines_);
}

WorkDisplay::~WorkDisplay() {
  finish();
}

engine::Progress WorkDisplay::progress() {
  return [this](const image::TransferEvent& event) {
    if (const auto* status = std::get_if<image::StatusEvent>(&event)) draw(status->text);
    const auto* layer = std::get_if<image::LayerEvent>(&event);
    if (layer == nullptr || layer->phase == image::LayerPhase::waiting) return;
    draw(layer->id + ": " + words_ + " " + human_bytes(layer->done) + " of " +
         human_bytes(layer->total));
  };
}

void WorkDisplay::draw(const std::string& line) {
  auto now = std::chrono::steady_clock::now();
  if (!shown_ || (drawn_at_ && now - *drawn_at_ < kRedrawEvery)) return;
  drawn_at_ = now;
  lines_.draw({truncate(escape_controls(line), lines_.room().columns)});
}

void WorkDisplay::finish() {
  if (!shown_) return;
  lines_.draw({});
  session_.report.above(nullptr);
  shown_ = false;
}

}  // namespace berth::cli
