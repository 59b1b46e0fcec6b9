// SPDX-License-Identifier: Apache-2.0
#include "engine/run/start.hpp"

#include "cli/berth/common.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

FlagTable start_flags(engine::StartOptions& o) {
  return {
      {"attach", 'a', "", "Attach stdout and stderr, forward signals, return the exit status",
       &o.attach},
      {"interactive", 'i', "", "Attach stdin too", &o.interactive},
      detach_keys_flag(o.detach_keys),
  };
}

Result<int> run_start(Session& session, const engine::StartOptions& o,
                      std::vector<std::string> arguments) {
  bool attach = o.attach || o.interactive;
  if (attach && arguments.size() > 1) {
    return make_error(Kind::usage, "you cannot start and attach multiple containers at once");
  }
  int own_status = 0;
  int status = for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto started = engine::start_container(session.context, name, o);
    if (!started.ok() && started.error().kind == Kind::not_found && name != arguments[0]) {
      Error error = std::move(started).error();
      error.hint =
          "berth ps --all; or berth exec " + arguments[0] + " COMMAND, to run a command in it";
      return error;
    }
    engine::RunOutcome outcome = TRY(std::move(started));
    if (outcome.command_error) {
      session.report.error(*outcome.command_error);
      print_reason(session, outcome);
      own_status = 1;  // as docker's start; `run` has another status
      return {};
    }
    if (outcome.stream_error) session.report.error(*outcome.stream_error);
    if (attach) own_status = outcome.status;
    print_detached(session, outcome);
    print_reason(session, outcome);
    if (!attach) print(session, name + "\n");
    return {};
  });
  return status != 0 ? status : own_status;
}

/// Flags of podman and enroot.
constexpr Elsewhere kStartElsewhere[] = {
    {"mount", "berth run -v SOURCE:DESTINATION IMAGE COMMAND",
     "start does not change the container"},
    {"root", "berth run -u 0 IMAGE COMMAND", "start does not change the container"},
    {"rw", "berth run IMAGE COMMAND", "start does not change the container"},
};

}  // namespace

const Verb start_verb{
    .text = {.name = "start",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Start stopped or newly created containers",
             .example = "berth start -ai web",
             .complete = Complete::container},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .container = [](const std::vector<std::string>& arguments) { return arguments[0]; },
    .networks =
        [](const std::vector<std::string>& arguments) {
          return engine::NetworkUse{.containers = arguments};
        },
    .store = Store::swept,
    .elsewhere = kStartElsewhere,
    .command = [] { return make_command(start_flags, run_start); },
};

}  // namespace berth::cli
