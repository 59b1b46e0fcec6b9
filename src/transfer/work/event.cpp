// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/event.hpp"

namespace berth::transfer {
namespace {

constexpr std::chrono::milliseconds kQuiet{50};

}  // namespace

void Events::layer(const std::string& id, image::LayerPhase phase, uint64_t done, uint64_t total) {
  if (layers_ == Layers::hidden) return;
  auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  auto last = last_.find(id);
  bool news = last == last_.end() || last->second.phase != phase || (done == total && total > 0);
  if (!news && now - last->second.time < kQuiet) return;
  last_[id] = {phase, now};
  sink_(image::LayerEvent{id, phase, done, total});
}

void Events::status(const std::string& text) {
  std::lock_guard lock(mutex_);
  sink_(image::StatusEvent{text});
}

void Events::warn(const std::string& text) {
  std::lock_guard lock(mutex_);
  sink_(image::WarningEvent{text});
}

}  // namespace berth::transfer
