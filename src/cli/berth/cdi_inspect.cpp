// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::cli {
namespace {

Result<int> run_cdi_inspect(Session& session, const NoOptions&, Arguments arguments) {
  print_json(session, TRY(engine::inspect_cdi(session.context, arguments[0])));
  return 0;
}

}  // namespace

const Verb cdi_inspect_verb{
    .text = {.name = "cdi inspect",
             .arguments = "NAME",
             .summary = "Show everything that a CDI device adds to a container",
             .example = "berth cdi inspect nvidia.com/gpu=0"},
    .arity = {1, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_cdi_inspect); },
};

}  // namespace berth::cli
