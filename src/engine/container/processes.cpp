// SPDX-License-Identifier: Apache-2.0
#include "engine/container/processes.hpp"

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/state/journal.hpp"

namespace berth::engine {

Result<std::string> container_processes(const Context& context, std::string_view reference,
                                        const std::vector<std::string>& ps_arguments) {
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.state == ContainerState::restarting) {
    return make_error(Kind::usage, "Container " + summary.name +
                                       " is restarting, wait until the container is running");
  }
  if (summary.state != ContainerState::running && summary.state != ContainerState::paused) {
    return make_error(Kind::usage, "Container " + summary.name + " is not running");
  }
  std::vector<std::string> words = {"ps", summary.id};
  emit_container_event(context.paths, summary.id, "top");
  words.insert(words.end(), ps_arguments.begin(), ps_arguments.end());
  return call_runtime(context, std::move(words));
}

}  // namespace berth::engine
