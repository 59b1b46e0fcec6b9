// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

struct Options {
  engine::RemoveOptions remove;
};

FlagTable flags(Options& o) {
  return {{"force", 'f', "", "Kill a running container first; a missing one is no error",
           &o.remove.force}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto removed = engine::remove_container(session.context, name, o.remove);
    bool missing = !removed.ok() && removed.error().kind == Kind::not_found;
    if (missing && o.remove.force) return {};
    TRY(std::move(removed));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

extern const Verb rm_verb;
const Verb rm_verb{
    .text = {.name = "rm",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Remove containers",
             .example = "berth rm -f web",
             .complete = Complete::container},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .store = Store::swept,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
