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
  table.push_back({"detach", 'd', "", "Leave the container to itself", &o.detach});
  table.push_back({"keep", 0, "", "Leave the stopped container to delete", &o.launch.request.keep});
  table.push_back({"no-subreaper", 0, "", "Accepted: no process is adopted", &o.no_subreaper});
  table.push_back({"caller-fd", 0, "N", "A socket that says when to begin and hears how it ended",
                   &o.launch.request.caller_fd});
  table.push_back({"rights-fd", 0, "N",
                   "Write what its processes may do to the memfd N, and seal it",
                   &o.launch.request.rights_fd});
  table.push_back({"gate-fd", 0, "N", "With --detach: a socket that hears the pid and lets it run",
                   &o.launch.request.gate_fd});
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
             .summary = "Create and start a container and stay with it to its end",
             .example = "berth-runtime run --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(run_flags, run_run); },
    .makes_process = true,
};

}  // namespace berth::cli::oci
