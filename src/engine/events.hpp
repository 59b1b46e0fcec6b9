// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/filter.hpp"
#include "events/event.hpp"

/// What `berth events` shows, and how the engine adds to it.
namespace berth::engine {

/// Absolute: where the engine and the monitors write down what they do.
std::string journal_path(const Paths& paths);

/// Writes an event down. One that cannot be written changes nothing of what has happened.
void tell(const Paths& paths, events::Event event);
/// The same of a container.
void tell_container(const Paths& paths, const std::string& id, const std::string& action,
                    std::map<std::string, std::string> attributes = {});
/// The same of an image.
void tell_image(const Paths& paths, const std::string& action, const std::string& id,
                const std::string& name);

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
