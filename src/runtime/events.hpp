// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; the files come from the
// kernel.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Receives each event as soon as it happens, as one line with a JSON object.
using EventSink = std::function<Result<void>(const std::string& line)>;

/// Reports the stats of a container once: {"type":"stats","id":…,"data":{…}}.
/// Errors: usage ("container not running").
Result<void> report_stats(const Store& store, const std::string& id, const EventSink& sink);

/// Reports the stats of a container at every `interval`, and {"type":"oom","id":…} when the OOM
/// killer kills a process in it, until the container's first process ends. Without a memory limit
/// there is no oom event.
/// Errors: usage ("container not running"); those of `sink`.
Result<void> follow_events(const Store& store, const std::string& id,
                           std::chrono::milliseconds interval, const EventSink& sink);

/// "5s", "1m30s", "250ms", as Go writes durations. Errors: usage (not of this form, an empty
/// string).
Result<std::chrono::milliseconds> read_duration(std::string_view text);

}  // namespace berth::runtime
