// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {
namespace {

template <Result<void> (*act)(const engine::Context&, std::string_view)>
Result<int> run_pause(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(act(session.context, name));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

const Verb pause_verb{
    .text = {.name = "pause",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Pause all processes of containers",
             .example = "berth pause web",
             .complete = Complete::running},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_pause<engine::pause_container>); },
};
const Verb unpause_verb{
    .text = {.name = "unpause",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Unpause all processes of containers",
             .example = "berth unpause web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_pause<engine::unpause_container>); },
};

}  // namespace berth::cli
