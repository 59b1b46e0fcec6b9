// SPDX-License-Identifier: Apache-2.0
#include "engine/container_directory.hpp"
#include "engine/containers.hpp"
#include "engine/time_text.hpp"
#include "json/value.hpp"

namespace berth::engine {
namespace {

json::Value time_value(std::optional<int64_t> seconds) {
  return seconds ? json::Value(format_time(*seconds)) : json::Value();
}

json::Value state_value(const ContainerSummary& c) {
  return json::Value(json::Object{
      {"Status", json::Value(container_state_name(c.state))},
      {"Running", json::Value(c.state == ContainerState::running)},
      {"Dead", json::Value(c.state == ContainerState::dead)},
      {"Pid", json::Value(c.pid.value_or(0))},
      {"ExitCode", c.exit_code ? json::Value(*c.exit_code) : json::Value()},
      {"StartedAt", time_value(c.created_at)},
      {"FinishedAt", time_value(c.finished_at)},
  });
}

}  // namespace

Result<std::string> inspect_container(const Context& context, std::string_view reference) {
  ContainerSummary c = TRY(get_container(context, reference));
  std::string directory = container_path(context.paths, c.id);
  std::string files =
      container_files(context.paths, c.id, c.remove ? Lifetime::removed : Lifetime::kept);
  json::Array args;
  for (size_t i = 1; i < c.command.size(); ++i) args.emplace_back(c.command[i]);
  return json::dump(json::Value(json::Object{
      {"Id", json::Value(c.id)},
      {"Created", json::Value(format_time(c.created_at))},
      {"Path", json::Value(c.command.empty() ? "" : c.command[0])},
      {"Args", json::Value(std::move(args))},
      {"State", state_value(c)},
      {"Image", json::Value(c.image_id)},
      {"Name", json::Value("/" + c.name)},
      {"ResolvConfPath", json::Value(files + "/resolv.conf")},
      {"HostnamePath", json::Value(files + "/hostname")},
      {"HostsPath", json::Value(files + "/hosts")},
      {"LogPath", json::Value(directory + "/log")},
      {"Driver", json::Value("overlay")},
      {"Platform", json::Value("linux")},
      {"Config", json::Value(json::Object{{"Image", json::Value(c.image)}})},
      {"HostConfig", json::Value(json::Object{{"AutoRemove", json::Value(c.remove)}})},
  }));
}

}  // namespace berth::engine
