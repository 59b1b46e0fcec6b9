// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

struct KillOptions {
  int signal = SIGKILL;
};

FlagTable kill_flags(KillOptions& o) {
  ReadValue read_signal = [&o](std::string_view text) -> Result<void> {
    o.signal = TRY(engine::parse_signal(text));
    return {};
  };
  return {{"signal", 's', "SIGNAL", "Signal to send (KILL)", std::move(read_signal)}};
}

Result<int> run_kill(Session& session, const KillOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::kill_container(session.context, name, o.signal));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Send a signal to running containers",
             .example = "berth kill --signal HUP web",
             .complete = Complete::running},
    .arity = {1},
    .command = [] { return make_command(kill_flags, run_kill); },
};

}  // namespace berth::cli
