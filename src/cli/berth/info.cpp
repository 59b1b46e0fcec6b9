// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/containers.hpp"
#include "engine/images.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::string format = "table";
};

FlagTable flags(Options& o) {
  return {format_flag(o.format)};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string>) {
  const engine::Context& context = session.context;
  size_t images = TRY(engine::list_images(context)).size();
  auto containers = TRY(engine::list_containers(context, engine::Which::all));
  uint64_t running = 0;
  for (const auto& c : containers) running += engine::is_alive(c.state) ? 1 : 0;
  if (o.format == "json") {
    print_json(session, json::Object{{"version", berth_version()},
                                     {"root", context.paths.root},
                                     {"state", context.paths.state},
                                     {"driver_root", context.paths.driver_root},
                                     {"programs", context.paths.libexec},
                                     {"identity", engine::identity_name(context.identity)},
                                     {"images", uint64_t{images}},
                                     {"containers", uint64_t{containers.size()}},
                                     {"running", running}});
    return 0;
  }
  print(session, property_list({{"Version", std::string(berth_version())},
                                {"Root", context.paths.root},
                                {"State", context.paths.state},
                                {"Driver root", context.paths.driver_root},
                                {"Programs", context.paths.libexec},
                                {"Identity", std::string(engine::identity_name(context.identity))},
                                {"Images", std::to_string(images)},
                                {"Containers", std::to_string(containers.size()) + " (" +
                                                   std::to_string(running) + " running)"}}));
  return 0;
}

}  // namespace

extern const Verb info_verb;
const Verb info_verb{
    .text = {.name = "info",
             .arguments = "",
             .summary = "Show where things are kept and how many there are",
             .example = "berth info --format json"},
    .arity = {0, 0},
    .needs = engine::Needs::user_namespace,
    .store = Store::swept,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
