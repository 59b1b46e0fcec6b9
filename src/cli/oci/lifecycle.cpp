// SPDX-License-Identifier: Apache-2.0
#include <regex.h>

#include <array>

#include "base/text.hpp"
#include "cli/oci/verb.hpp"
#include "runtime/container.hpp"

namespace berth::cli::oci {
namespace {

// ---- create -------------------------------------------------------------------------------------

Result<int> run_create(Session& session, const LaunchOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::LaunchRequest request = TRY(to_request(session, options, arguments[0]));
  TRY_CTX(runtime::create(store, std::move(request), session.report, session.log),
          "cannot create container '" + arguments[0] + "'");
  return 0;
}

// ---- start --------------------------------------------------------------------------------------

Result<int> run_start(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  TRY_CTX(runtime::start(store, arguments[0], session.report, session.log),
          "cannot start container '" + arguments[0] + "'");
  return 0;
}

// ---- run ----------------------------------------------------------------------------------------

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
       {"rights-fd", 0, "N", "Write the rights of its processes to the memfd N, and seal it",
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

// ---- --regex of kill and delete -----------------------------------------------------------------

/// The ids of `store` that match `pattern`, an extended regular expression (regex(7)).
/// Errors: usage (an invalid expression).
Result<std::vector<std::string>> matching_ids(const runtime::Store& store,
                                              const std::string& pattern) {
  regex_t expression;
  int status = ::regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
  if (status != 0) {
    std::array<char, 128> reason{};
    ::regerror(status, &expression, reason.data(), reason.size());
    return make_error(Kind::usage, "--regex: " + quote(pattern) +
                                       " is not a regular expression: " + reason.data());
  }
  std::unique_ptr<regex_t, void (*)(regex_t*)> owner(&expression, ::regfree);
  std::vector<std::string> ids;
  for (std::string& id : TRY(store.list())) {
    if (::regexec(&expression, id.c_str(), 0, nullptr, 0) == 0) ids.push_back(std::move(id));
  }
  return ids;
}

/// Calls `act` for each of `ids`. A failure does not stop the others: it is a warning, and the
/// returned exit status is 1.
Result<int> for_each_id(Session& session, const std::vector<std::string>& ids,
                        const std::function<Result<void>(const std::string& id)>& act) {
  int status = 0;
  for (const std::string& id : ids) {
    auto done = act(id);
    if (done.ok()) continue;
    session.log.warn(to_line(done.error()));
    status = 1;
  }
  return status;
}

// ---- kill ---------------------------------------------------------------------------------------

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

// ---- delete -------------------------------------------------------------------------------------

struct DeleteOptions {
  bool force = false;
  bool regex = false;
  std::string oom_file;
};

FlagTable delete_flags(DeleteOptions& o) {
  return {
      {"force", 'f', "", "Kill it first if it runs; ignore a missing container", &o.force},
      {"regex", 'r', "", "Treat ID as a regular expression that matches container ids", &o.regex},
      {"oom-file", 0, "FILE", "Create FILE if the OOM killer killed a process of it", &o.oom_file},
  };
}

Result<int> run_delete(Session& session, const DeleteOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::RemoveOptions remove{options.force ? runtime::Force::yes : runtime::Force::no,
                                options.oom_file};
  auto act = [&](const std::string& id) -> Result<void> {
    TRY_CTX(runtime::remove(store, id, remove, session.log),
            "cannot delete container " + quote(id));
    return {};
  };
  if (options.regex) return for_each_id(session, TRY(matching_ids(store, arguments[0])), act);
  TRY(act(arguments[0]));
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
const Verb start_verb{
    .text = {.name = "start",
             .arguments = "ID",
             .summary = "Start the program of a created container",
             .example = "berth-runtime start web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_start); },
};
const Verb run_verb{
    .text = {.name = "run",
             .arguments = "ID",
             .summary = "Create and start a container, and wait until it exits",
             .example = "berth-runtime run --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(run_flags, run_run); },
    .makes_process = true,
};
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
const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "ID [SIGNAL]",
             .summary = "Send a signal to a container (TERM by default)",
             .example = "berth-runtime kill web KILL"},
    .arity = {1, 2},
    .command = [] { return make_command(kill_flags, run_kill); },
};
const Verb delete_verb{
    .text = {.name = "delete",
             .arguments = "ID",
             .summary = "Delete a stopped container",
             .example = "berth-runtime delete --force web"},
    .arity = {1, 1},
    .command = [] { return make_command(delete_flags, run_delete); },
};

}  // namespace berth::cli::oci
