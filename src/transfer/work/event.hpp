// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::transfer {

/// Where a transfer sends its events; called from one thread at a time.
using EventSink = std::function<void(const image::TransferEvent&)>;

/// Collects the events of a transfer's threads: passes them to the sink one at a time, with at most
/// 20 progress events a second and layer. Also the Log of the code that they call.
class Events final : public Log {
 public:
  enum class Layers { shown, hidden };

  Events(EventSink sink, Layers layers) : sink_(std::move(sink)), layers_(layers) {}

  /// Always passes on the first and the last event of a phase.
  void layer(const std::string& id, image::LayerPhase phase, uint64_t done, uint64_t total);
  void status(const std::string& text);
  void warn(const std::string& text) override;
  void debug(const std::string&) override {}

 private:
  struct Last {
    image::LayerPhase phase;
    std::chrono::steady_clock::time_point time;
  };

  EventSink sink_;
  Layers layers_;
  std::mutex mutex_;
  std::map<std::string, Last> last_;  // by layer
};

}  // namespace berth::transfer
