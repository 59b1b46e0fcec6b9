// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

Result<int> run_create(Session& session, const LaunchOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::LaunchRequest request = TRY(to_request(session, options, arguments[0]));
  TRY_CTX(runtime::create(store, std::move(request), session.report, session.log),
          "cannot create container '" + arguments[0] + "'");
  return 0;
}

}  // namespace

const Verb create_verb{
    .text = {.name = "create",
             .arguments = "ID",
             .summary = "Create a container; 'start' then runs its program",
             .example = "berth-runtime create --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(launch_flags, run_create); },
    .makes_process = true,
};

}  // namespace berth::cli::oci
