// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {
namespace {

// An internal command: `berth` runs it for a container that has lost its monitor, because the new
// monitor has to be in the container's user namespace.

Result<int> run_adopt(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::adopt_container(session.context, arguments[0]));
  return 0;
}

}  // namespace

const Verb adopt_verb{
    .text = {.name = "adopt",
             .arguments = "CONTAINER",
             .summary = "Give a running container that lost its monitor a new one",
             .example = "berth adopt web"},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .hidden = true,
    .command = [] { return make_command(no_flags, run_adopt); },
};

}  // namespace berth::cli
