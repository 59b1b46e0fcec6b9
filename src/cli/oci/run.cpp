// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct RunOptions {
  LaunchOptions launch;
  bool detach = false;
  bool no_subreaper = false;
};

FlagTable run_flags(RunOptions& o) {
  FlagTable table = launch_flags(o.launch);
  runtime::LaunchRequest& r = o.launch.request;
  table.insert(
      table.end(),
      {{"detach", 'd', "", "Do not wait for the container", &o.detach},
       {"keep", 0, "", "Keep the stopped container until it is deleted", &r.keep},
       {"no-subreaper", 0, "", "No effect: berth-runtime is never a subreaper", &o.no_subreaper},
       {"caller-fd", 0, "N", "Socket that sends the start signal and receives the exit status",
        &r.caller_fd},
       {"rights-fd", 0, "N", "Write the privileges of its processes to memfd N, and seal it",
        &r.rights_fd},
       {"gate-fd", 0, "N", "With --detach: socket that receives the pid and allows the start",
        &r.gate_fd}});
  return table;
}

Result<int> run_run(Session& session, const RunOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::LaunchRequest request = TRY(to_request(session, options.launch, arguments[0]));
  auto detach = options.detach ? runtime::Detach::yes : runtime::Detach::no;
  return TRY_CTX(runtime::run(store, std::move(request), detach, session.report, session.log),
                 "cannot run container '" + arguments[0] + "'");
}

}  // namespace

const Verb run_verb{
    .text = {.name = "run",
             .arguments = "ID",
             .summary = "Create and start a container, and wait until it exits",
             .example = "berth-runtime run --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(run_flags, run_run); },
    .makes_process = true,
};

}  // namespace berth::cli::oci
