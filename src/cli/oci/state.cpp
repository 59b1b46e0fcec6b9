// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

Result<int> run_state(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::Listed found = TRY(runtime::look_up(store, arguments[0]));
  session.out = runtime::public_state(found.state, runtime::status_name(found.status)) + "\n";
  return 0;
}

}  // namespace

const Verb state_verb{
    .text = {.name = "state",
             .arguments = "ID",
             .summary = "Print the state of a container as JSON",
             .example = "berth-runtime state web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_state); },
};

}  // namespace berth::cli::oci
