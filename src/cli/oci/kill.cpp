// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct KillOptions {
  bool all = false;
};

FlagTable kill_flags(KillOptions& o) {
  return {{"all", 'a', "", "Signal every process of the container", &o.all}};
}

Result<int> run_kill(Session& session, const KillOptions& options,
                     const std::vector<std::string>& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  int signal = TRY(runtime::read_signal(arguments.size() > 1 ? arguments[1] : "TERM"));
  TRY(runtime::kill(store, arguments[0], signal,
                    options.all ? runtime::Whom::all : runtime::Whom::first_process));
  return 0;
}

}  // namespace

const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "ID [SIGNAL]",
             .summary = "Send a signal to a container, TERM unless told",
             .example = "berth-runtime kill web KILL"},
    .arity = {1, 2},
    .command = [] { return make_command(kill_flags, run_kill); },
};

}  // namespace berth::cli::oci
