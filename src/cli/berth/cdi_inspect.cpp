// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/cdi.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string> arguments) {
  print_json(session, TRY(engine::inspect_cdi(session.context, arguments[0])));
  return 0;
}

}  // namespace

extern const Verb cdi_inspect_verb;
const Verb cdi_inspect_verb{
    .text = {.name = "cdi inspect",
             .arguments = "NAME",
             .summary = "Show all that a container gets with a CDI device",
             .example = "berth cdi inspect nvidia.com/gpu=0"},
    .arity = {1, 1},
    .store = Store::none,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
