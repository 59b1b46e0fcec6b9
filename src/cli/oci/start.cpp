// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

Result<int> run_start(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  TRY_CTX(runtime::start(store, arguments[0], session.report, session.log),
          "cannot start container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb start_verb{
    .text = {.name = "start",
             .arguments = "ID",
             .summary = "Start the program of a created container",
             .example = "berth-runtime start web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_start); },
};

}  // namespace berth::cli::oci
