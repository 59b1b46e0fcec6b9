// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing; the kernel's texts.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Takes one event, a JSON object on a line, as soon as there is one.
using EventSink = std::function<Result<void>(const std::string& line)>;

/// Gives the stats of a container once: {"type":"stats","id":…,"data":{…}}.
/// Errors: usage ("container not running").
Result<void> report_stats(const Store& store, const std::string& id, const EventSink& sink);

/// Gives its stats at every `interval`, and {"type":"oom","id":…} when the kernel finds no memory
/// for it, until its first process has ended. Where memory is not limited there is no such event.
/// Errors: usage ("container not running"); those of `sink`.
Result<void> follow_events(const Store& store, const std::string& id,
                           std::chrono::milliseconds interval, const EventSink& sink);

/// "5s", "1m30s", "250ms", as Go writes durations. Errors: usage (others, and nothing at all).
Result<std::chrono::milliseconds> read_duration(std::string_view text);

}  // namespace berth::runtime
