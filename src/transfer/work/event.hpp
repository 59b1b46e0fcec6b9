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

/// Where the threads of a transfer report what happens: one event at a time to the sink, and of a
/// layer's progress no more than 20 a second. Also the Log of what they call.
class Events final : public Log {
 public:
  enum class Layers { shown, hidden };

  Events(EventSink sink, Layers layers) : sink_(std::move(sink)), layers_(layers) {}

  /// The first and the last event of a phase always go out.
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
