// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/container/containers.hpp"
#include "engine/container/list.hpp"
#include "engine/request/text.hpp"
#include "engine/run/start.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

// ---- start --------------------------------------------------------------------------------------

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
      own_status = 1;  // docker's, not that of run
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

/// Of podman and enroot.
constexpr Elsewhere kStartElsewhere[] = {
    {"mount", "berth run -v SOURCE:DESTINATION IMAGE COMMAND",
     "start does not change the container"},
    {"root", "berth run -u 0 IMAGE COMMAND", "start does not change the container"},
    {"rw", "berth run IMAGE COMMAND", "start does not change the container"},
};

// ---- attach -------------------------------------------------------------------------------------

struct AttachOptions {
  bool no_stdin = false;
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;
};

FlagTable attach_flags(AttachOptions& o) {
  return {
      {"no-stdin", 0, "", "Do not attach stdin", &o.no_stdin},
      {"sig-proxy", 0, "", "Forward received signals to the container (true)", &o.signal_proxy},
      detach_keys_flag(o.detach_keys),
  };
}

Result<int> run_attach(Session& session, const AttachOptions& o, Arguments arguments) {
  engine::AttachRequest request{!o.no_stdin, o.signal_proxy, o.detach_keys};
  engine::RunOutcome outcome =
      TRY(engine::attach_container(session.context, arguments[0], request));
  if (outcome.stream_error) session.report.error(*outcome.stream_error);
  print_detached(session, outcome);
  print_reason(session, outcome);
  return outcome.status;
}

// ---- stop ---------------------------------------------------------------------------------------

/// Of stop and restart.
struct GraceOptions {
  std::optional<int64_t> grace;
};

FlagTable grace_flags(GraceOptions& o) {
  ReadValue read_grace = [&o](std::string_view text) -> Result<void> {
    TRY(read_integer(o.grace)(text));
    if (*o.grace >= -1 && *o.grace <= 1'000'000) return {};
    return make_error(Kind::usage, "expected seconds, or -1 to wait forever");
  };
  return {{"time", 't', "SECONDS", "Time to wait before killing (10); -1 to wait forever",
           std::move(read_grace)}};
}

Result<int> run_stop(Session& session, const GraceOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::stop_container(session.context, name, o.grace));
    print(session, name + "\n");
    return {};
  });
}

/// Of podman and enroot.
constexpr Elsewhere kStopElsewhere[] = {
    {"a", "berth stop $(berth ps -q)"},
    {"all", "berth stop $(berth ps -q)"},
};

// ---- kill ---------------------------------------------------------------------------------------

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

// ---- restart ------------------------------------------------------------------------------------

Result<int> run_restart(Session& session, const GraceOptions& o, Arguments arguments) {
  std::vector<std::string> stopped;
  int stopping =
      for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
        TRY(engine::stop_container(session.context, name, o.grace));
        stopped.push_back(name);
        return {};
      });
  if (stopped.empty()) return stopping;
  // From inside a user namespace processes in another one cannot be signalled.
  engine::Context inside = session.context;
  auto beside = engine::process_of(inside.paths, stopped[0], session.report);
  if (beside) {
    inside.identity = TRY(engine::join_user_namespace(*beside));
  } else if (auto among = TRY(engine::join_network_users(inside, {.containers = stopped}))) {
    inside.identity = *among;
  } else {
    inside.identity = TRY(engine::enter_identity(engine::Needs::user_namespace, session.report));
  }
  int starting = for_each_argument(session, stopped, [&](const std::string& name) -> Result<void> {
    TRY(engine::start_again(inside, name));
    print(session, name + "\n");
    return {};
  });
  return std::max(stopping, starting);
}

// ---- pause --------------------------------------------------------------------------------------

template <Result<void> (*act)(const engine::Context&, std::string_view)>
Result<int> run_pause(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(act(session.context, name));
    print(session, name + "\n");
    return {};
  });
}

// ---- wait ---------------------------------------------------------------------------------------

Result<int> run_wait(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    int status = TRY(engine::wait_container(session.context, name));
    print(session, std::to_string(status) + "\n");
    return {};
  });
}

// ---- rename -------------------------------------------------------------------------------------

Result<int> run_rename(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::rename_container(session.context, arguments[0], arguments[1]));
  return 0;
}

// ---- adopt --------------------------------------------------------------------------------------
// An internal command: `berth` runs it for a container that has lost its monitor, because the new
// monitor has to be in the container's user namespace.

Result<int> run_adopt(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::adopt_container(session.context, arguments[0]));
  return 0;
}

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
const Verb attach_verb{
    .text = {.name = "attach",
             .arguments = "CONTAINER",
             .summary = "Attach the terminal to a running container",
             .example = "berth attach web",
             .complete = Complete::running},
    .arity = {1, 1},
    .command = [] { return make_command(attach_flags, run_attach); },
};
const Verb stop_verb{
    .text = {.name = "stop",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Stop running containers",
             .example = "berth stop --time 30 web",
             .complete = Complete::running},
    .arity = {1},
    .elsewhere = kStopElsewhere,
    .command = [] { return make_command(grace_flags, run_stop); },
};
const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Send a signal to running containers",
             .example = "berth kill --signal HUP web",
             .complete = Complete::running},
    .arity = {1},
    .command = [] { return make_command(kill_flags, run_kill); },
};
const Verb restart_verb{
    .text = {.name = "restart",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Restart containers",
             .example = "berth restart --time 30 web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(grace_flags, run_restart); },
};
const Verb pause_verb{
    .text = {.name = "pause",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Pause all processes of containers",
             .example = "berth pause web",
             .complete = Complete::running},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_pause<engine::pause_container>); },
};
const Verb unpause_verb{
    .text = {.name = "unpause",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Unpause all processes of containers",
             .example = "berth unpause web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_pause<engine::unpause_container>); },
};
const Verb wait_verb{
    .text = {.name = "wait",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Wait until containers exit, then print their exit codes",
             .example = "berth wait web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(no_flags, run_wait); },
};
const Verb rename_verb{
    .text = {.name = "rename",
             .arguments = "CONTAINER NAME",
             .summary = "Rename a container",
             .example = "berth rename web old-web",
             .complete = Complete::container},
    .arity = {2, 2},
    .command = [] { return make_command(no_flags, run_rename); },
};
const Verb adopt_verb{
    .text = {.name = "adopt",
             .arguments = "CONTAINER",
             .summary = "Give a running container that lost its monitor a new one",
             .example = "berth adopt web"},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .hidden = true,
    .command = [] { return make_command(no_flags, run_adopt); },
};

}  // namespace berth::cli
