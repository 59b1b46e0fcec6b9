// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "events/event.hpp"

/// What `berth events` shows.
namespace berth::engine {

struct EventQuery {
  std::optional<int64_t> since_ns;  ///< since 1970, as the next
  std::optional<int64_t> until_ns;
  Filters filters;
};

/// Calls `sink`, until it gives false, for the events that fit: those since `since_ns` and until
/// `until_ns` that are still known, and those that come until then; without both the ones to come,
/// without an end. Events of containers have image, name and labels as attributes, as far as
/// anybody still knows them. Errors: usage (a filter), io.
Result<void> watch_events(const Context& context, const EventQuery& query,
                          const std::function<bool(const events::Event&)>& sink);

}  // namespace berth::engine
