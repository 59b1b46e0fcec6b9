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
  TRY(engine::rename_container(session.context, arguments[0], arguments[1]));
  return 0;
}

}  // namespace

extern const Verb rename_verb;
const Verb rename_verb{
    .text = {.name = "rename",
             .arguments = "CONTAINER NAME",
             .summary = "Give a container another name",
             .example = "berth rename web old-web",
             .complete = Complete::container},
    .arity = {2, 2},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
