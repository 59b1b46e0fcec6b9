// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/network.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string> arguments) {
  std::string port = arguments.size() > 1 ? arguments[1] : "";
  for (const std::string& line : TRY(engine::list_published(session.context, arguments[0], port))) {
    print(session, line + "\n");
  }
  return 0;
}

}  // namespace

extern const Verb port_verb;
const Verb port_verb{
    .text = {.name = "port",
             .arguments = "CONTAINER [PORT[/PROTOCOL]]",
             .summary = "Show which ports of the host lead to a container's",
             .example = "berth port web 80/tcp",
             .complete = Complete::container},
    .arity = {1, 2},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
