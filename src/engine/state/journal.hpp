// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "engine/context/context.hpp"
#include "events/journal.hpp"

/// Writes the engine's events to the journal, which `berth events` reads (events.hpp).
namespace berth::engine {

/// The absolute path of the journal to which the engine and the monitors write.
std::string journal_path(const Paths& paths);

/// Records an event. A failure is ignored: the action has already happened.
void emit_event(const Paths& paths, events::Event event);
/// The same for a container.
void emit_container_event(const Paths& paths, const std::string& id, const std::string& action,
                          std::map<std::string, std::string> attributes = {});
/// The same for an image.
void emit_image_event(const Paths& paths, const std::string& action, const std::string& id,
                      const std::string& name);

}  // namespace berth::engine
