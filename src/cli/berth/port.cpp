// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/network/network.hpp"

namespace berth::cli {
namespace {

Result<int> run_port(Session& session, const NoOptions&, Arguments arguments) {
  std::string port = arguments.size() > 1 ? arguments[1] : "";
  for (const std::string& line : TRY(engine::list_published(session.context, arguments[0], port))) {
    print(session, line + "\n");
  }
  return 0;
}

}  // namespace

const Verb port_verb{
    .text = {.name = "port",
             .arguments = "CONTAINER [PORT[/PROTOCOL]]",
             .summary = "List the published ports of a container",
             .example = "berth port web 80/tcp",
             .complete = Complete::container},
    .arity = {1, 2},
    .command = [] { return make_command(no_flags, run_port); },
};

}  // namespace berth::cli
