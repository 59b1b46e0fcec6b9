// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "runtime/container.hpp"

namespace berth::cli::oci {
namespace {

Result<int> run_resume(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  TRY_CTX(runtime::resume(store, arguments[0]), "cannot resume container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb resume_verb{
    .text = {.name = "resume",
             .arguments = "ID",
             .summary = "Resume a paused container",
             .example = "berth-runtime resume web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_resume); },
};

}  // namespace berth::cli::oci
