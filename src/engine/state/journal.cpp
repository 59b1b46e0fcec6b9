// SPDX-License-Identifier: Apache-2.0
#include "engine/state/journal.hpp"

#include <utility>

#include "base/result.hpp"
#include "events/journal.hpp"

namespace berth::engine {

std::string journal_path(const Paths& paths) {
  return paths.state + "/" + events::kJournalFile;
}

void emit_event(const Paths& paths, events::Event event) {
  ignore(events::append(journal_path(paths), std::move(event)));
}

void emit_container_event(const Paths& paths, const std::string& id, const std::string& action,
                          std::map<std::string, std::string> attributes) {
  emit_event(paths, {"container", action, id, std::move(attributes)});
}

void emit_image_event(const Paths& paths, const std::string& action, const std::string& id,
                      const std::string& name) {
  emit_event(paths, {"image", action, id, {{"name", name}}});
}

}  // namespace berth::engine
