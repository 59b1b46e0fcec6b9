// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {
namespace {

Result<int> run_rename(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::rename_container(session.context, arguments[0], arguments[1]));
  return 0;
}

}  // namespace

const Verb rename_verb{
    .text = {.name = "rename",
             .arguments = "CONTAINER NAME",
             .summary = "Rename a container",
             .example = "berth rename web old-web",
             .complete = Complete::container},
    .arity = {2, 2},
    .command = [] { return make_command(no_flags, run_rename); },
};

}  // namespace berth::cli
