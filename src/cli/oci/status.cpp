// SPDX-License-Identifier: Apache-2.0
#include "cli/core/table.hpp"
#include "cli/oci/verb.hpp"
#include "json/value.hpp"
#include "runtime/events.hpp"
#include "runtime/state/find.hpp"
#include "runtime/state/process_table.hpp"

namespace berth::cli::oci {
namespace {

// ---- state --------------------------------------------------------------------------------------

Result<int> run_state(Session& session, const NoOptions&, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::Listed found = TRY(runtime::look_up(store, arguments[0]));
  session.out = runtime::public_state(found.state, runtime::status_name(found.status)) + "\n";
  return 0;
}

// ---- list ---------------------------------------------------------------------------------------

struct ListOptions {
  std::string format = "table";
  bool quiet = false;
};

FlagTable list_flags(ListOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: table or json", &o.format, {"table", "json"}},
          {"quiet", 'q', "", "Show only ids", &o.quiet}};
}

json::Value as_json(const runtime::Listed& one) {
  json::Object object;
  object.emplace_back("ociVersion", one.state.oci_version);
  object.emplace_back("id", one.state.id);
  bool ended = one.status == runtime::Status::stopped;
  object.emplace_back("pid", int64_t{ended ? 0 : one.state.pid});
  object.emplace_back("status", std::string(runtime::status_name(one.status)));
  object.emplace_back("bundle", one.state.bundle);
  object.emplace_back("rootfs", one.state.rootfs);
  object.emplace_back("created", one.state.created);
  object.emplace_back("owner", std::to_string(one.state.owner));
  return object;
}

std::string as_table(const std::vector<runtime::Listed>& listed) {
  Table table({"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"});
  for (const auto& one : listed) {
    bool ended = one.status == runtime::Status::stopped;
    table.add({one.state.id, std::to_string(ended ? 0 : one.state.pid),
               std::string(runtime::status_name(one.status)), one.state.bundle, one.state.created,
               std::to_string(one.state.owner)});
  }
  return table.text();
}

Result<int> run_list(Session& session, const ListOptions& options, const Arguments&) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  std::vector<runtime::Listed> listed = TRY(runtime::list(store));
  if (options.quiet) {
    for (const auto& one : listed) session.out += one.state.id + "\n";
  } else if (options.format == "json") {
    json::Array array;
    for (const auto& one : listed) array.push_back(as_json(one));
    session.out = json::dump(json::Value(std::move(array))) + "\n";
  } else {
    session.out = as_table(listed);
  }
  return 0;
}

// ---- ps -----------------------------------------------------------------------------------------

struct PsOptions {
  std::string format = "table";
};

FlagTable ps_flags(PsOptions& o) {
  return {{"format", 'f', "FORMAT", "Output format: table or json", &o.format, {"table", "json"}}};
}

std::string as_json(const std::vector<pid_t>& processes) {
  json::Array array;
  for (pid_t pid : processes) array.emplace_back(int64_t{pid});
  return json::dump(json::Value(std::move(array))) + "\n";
}

Result<int> run_ps(Session& session, const PsOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::Found found = TRY(runtime::find(store, arguments[0]));
  std::vector<pid_t> processes = TRY(runtime::shown_processes_of(found));
  if (options.format == "json") {
    session.out = as_json(processes);
    return 0;
  }
  session.out = TRY(runtime::process_table(processes, {arguments.begin() + 1, arguments.end()}));
  return 0;
}

// ---- events -------------------------------------------------------------------------------------

struct EventsOptions {
  std::string interval = "5s";
  bool stats = false;
};

FlagTable events_flags(EventsOptions& o) {
  return {{"interval", 0, "TIME", "Time between statistics (5s)", &o.interval},
          {"stats", 0, "", "Print the statistics once and exit", &o.stats}};
}

Result<int> run_events(Session& session, const EventsOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  auto interval = TRY_CTX(runtime::read_duration(options.interval), "cannot use --interval");
  std::string context = "cannot watch container '" + arguments[0] + "'";
  if (options.stats) {
    TRY_CTX(runtime::report_stats(store, arguments[0], session.print), context);
  } else {
    TRY_CTX(runtime::follow_events(store, arguments[0], interval, session.print), context);
  }
  return 0;
}

}  // namespace

const Verb state_verb{
    .text = {.name = "state",
             .arguments = "ID",
             .summary = "Print the state of a container as JSON",
             .example = "berth-runtime state web"},
    .arity = {1, 1},
    .command = [] { return make_command(no_flags, run_state); },
};
const Verb list_verb{
    .text = {.name = "list",
             .summary = "List the containers under --root",
             .example = "berth-runtime list --format json"},
    .command = [] { return make_command(list_flags, run_list); },
};
const Verb ps_verb{
    .text = {.name = "ps",
             .arguments = "ID [PS-ARGUMENT...]",
             .summary = "List the processes of a container, as the host's ps shows them",
             .example = "berth-runtime ps web -o pid,args"},
    .arity = {1, SIZE_MAX},
    .command = [] { return make_command(ps_flags, run_ps); },
    .flags_end = FlagsEnd::at_first_argument,
};
const Verb events_verb{
    .text = {.name = "events",
             .arguments = "ID",
             .summary = "Print resource use and OOM events, as JSON lines",
             .example = "berth-runtime events --stats web"},
    .arity = {1, 1},
    .command = [] { return make_command(events_flags, run_events); },
};

}  // namespace berth::cli::oci
