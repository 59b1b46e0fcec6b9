// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/node/node.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

Result<int> run_node_save(Session& session, const NoOptions&, Arguments arguments) {
  if (arguments.empty() || arguments.front() == "-") {
    print_json(session, json::to_value(TRY(engine::this_node(session.context))));
    return 0;
  }
  TRY(engine::save_node(session.context, arguments.front()));
  return 0;
}

}  // namespace

const Verb node_save_verb{
    .text = {.name = "node save",
             .arguments = "[FILE|-]",
             .summary = "Save the profile of this machine to a .json or .toml file",
             .example = "berth node save nodes/$(hostname).toml",
             .complete = Complete::file},
    .arity = {0, 1},
    .command = [] { return make_command(no_flags, run_node_save); },
};

}  // namespace berth::cli
