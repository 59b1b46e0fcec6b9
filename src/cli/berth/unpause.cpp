// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string> arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::unpause_container(session.context, name));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

extern const Verb unpause_verb;
const Verb unpause_verb{
    .text = {.name = "unpause",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Let the processes of paused containers go on",
             .example = "berth unpause web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
