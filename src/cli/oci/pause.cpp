// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "runtime/container.hpp"

namespace berth::cli::oci {
namespace {

// ---- pause --------------------------------------------------------------------------------------

Result<int> run_pause(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  TRY_CTX(runtime::pause(store, arguments[0]), "cannot pause container '" + arguments[0] + "'");
  return 0;
}

// ---- resume -------------------------------------------------------------------------------------

Result<int> run_resume(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  TRY_CTX(runtime::resume(store, arguments[0]), "cannot resume container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb pause_verb{
    .text = {.name = "pause",
             .arguments = "ID",
             .summary = "Pause all processes of a container",
             .example = "berth-runtime pause web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_pause); },
};
const Verb resume_verb{
    .text = {.name = "resume",
             .arguments = "ID",
             .summary = "Resume a paused container",
             .example = "berth-runtime resume web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_resume); },
};

}  // namespace berth::cli::oci
