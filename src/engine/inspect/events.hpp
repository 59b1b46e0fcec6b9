// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "events/journal.hpp"

/// The events of `berth events`.
namespace berth::engine {

struct EventQuery {
  std::optional<int64_t> since_ns;  ///< since 1970, as is until_ns
  std::optional<int64_t> until_ns;
  Filters filters;
};

/// Calls `sink` for matching events until `sink` returns false: first for recorded events from
/// `since_ns` on, then for new events, until `until_ns`. Without `since_ns` and `until_ns` reports
/// new events only, without end. The events of a container have its image, name and labels as
/// attributes, as far as they are still known. Errors: usage (a filter), io.
Result<void> watch_events(const Context& context, const EventQuery& query,
                          const std::function<bool(const events::Event&)>& sink);

}  // namespace berth::engine
