// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "engine/context/context.hpp"
#include "events/event.hpp"

/// How the engine writes down what happens; `berth events` reads it (events.hpp).
namespace berth::engine {

/// Absolute: where the engine and the monitors write down what they do.
std::string journal_path(const Paths& paths);

/// Writes an event down. One that cannot be written changes nothing of what has happened.
void emit_event(const Paths& paths, events::Event event);
/// The same of a container.
void emit_container_event(const Paths& paths, const std::string& id, const std::string& action,
                          std::map<std::string, std::string> attributes = {});
/// The same of an image.
void emit_image_event(const Paths& paths, const std::string& action, const std::string& id,
                      const std::string& name);

}  // namespace berth::engine
