// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {
namespace {

Result<int> run_wait(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    int status = TRY(engine::wait_container(session.context, name));
    print(session, std::to_string(status) + "\n");
    return {};
  });
}

}  // namespace

const Verb wait_verb{
    .text = {.name = "wait",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Wait until containers exit, then print their exit codes",
             .example = "berth wait web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_wait); },
};

}  // namespace berth::cli
