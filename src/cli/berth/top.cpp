// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/stats.hpp"

namespace berth::cli {
namespace {

Result<int> run_top(Session& session, const NoOptions&, Arguments arguments) {
  std::vector<std::string> ps_arguments(arguments.begin() + 1, arguments.end());
  print(session, TRY(engine::container_processes(session.context, arguments[0], ps_arguments)));
  return 0;
}

}  // namespace

const Verb top_verb{
    .text = {.name = "top",
             .arguments = "CONTAINER [PS-OPTION...]",
             .summary = "List the processes of a container",
             .example = "berth top web -o pid,etime,args",
             .complete = Complete::container},
    .arity = {1},
    .flags_end = FlagsEnd::at_first_argument,
    .command = [] { return make_command(no_flags, run_top); },
};

}  // namespace berth::cli
