// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/matching.hpp"

namespace berth::cli::oci {
namespace {

struct KillOptions {
  bool all = false;
  bool regex = false;
};

FlagTable kill_flags(KillOptions& o) {
  return {
      {"all", 'a', "", "Signal every process of the container", &o.all},
      {"regex", 'r', "", "Treat ID as a regular expression that matches container ids", &o.regex}};
}

Result<int> run_kill(Session& session, const KillOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  int signal = TRY(runtime::read_signal(arguments.size() > 1 ? arguments[1] : "TERM"));
  auto whom = options.all ? runtime::Whom::all : runtime::Whom::first_process;
  auto act = [&](const std::string& id) { return runtime::kill(store, id, signal, whom); };
  if (options.regex) return for_each_id(session, TRY(matching_ids(store, arguments[0])), act);
  TRY(act(arguments[0]));
  return 0;
}

}  // namespace

const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "ID [SIGNAL]",
             .summary = "Send a signal to a container (TERM by default)",
             .example = "berth-runtime kill web KILL"},
    .arity = {1, 2},
    .command = [] { return make_command(kill_flags, run_kill); },
};

}  // namespace berth::cli::oci
