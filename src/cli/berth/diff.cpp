// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/files/changes.hpp"

namespace berth::cli {
namespace {

Result<int> run_diff(Session& session, const NoOptions&, Arguments arguments) {
  std::string text;
  for (const auto& change : TRY(engine::container_changes(session.context, arguments[0]))) {
    text += std::string(1, change.kind) + " " + escape_controls(change.path) + "\n";
  }
  print(session, text);
  return 0;
}

}  // namespace

const Verb diff_verb{
    .text = {.name = "diff",
             .arguments = "CONTAINER",
             .summary = "List files that a container added (A), changed (C) or deleted (D)",
             .example = "berth diff web",
             .complete = Complete::container},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .command = [] { return make_command(no_flags, run_diff); },
};

}  // namespace berth::cli
