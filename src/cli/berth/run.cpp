// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"
#include "cli/berth/request_flags.hpp"
#include "cli/berth/show/explain_text.hpp"
#include "cli/core/table.hpp"
#include "engine/decide/explain.hpp"
#include "engine/request/text.hpp"
#include "engine/run/dry_run.hpp"
#include "engine/run/start.hpp"
#include "engine/run/update.hpp"
#include "engine/slurm/step.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

// ---- dry run ------------------------------------------------------------------------------------

json::Value to_json(const engine::PlannedRun& plan) {
  json::Array steps;
  for (const engine::PlannedStep& step : plan.steps) {
    json::Object members;
    for (const auto& [name, value] : step.members) members.emplace_back(name, value);
    steps.push_back(
        json::Object{{"name", step.name}, {"text", step.text}, {"members", std::move(members)}});
  }
  return json::Object{{"steps", std::move(steps)}, {"warnings", json_strings(plan.warnings)}};
}

std::string to_text(const engine::PlannedRun& plan) {
  std::string text;
  size_t number = 0;
  for (const engine::PlannedStep& step : plan.steps) {
    text += pad_left(std::to_string(++number), 3) + "  " + escape_controls(step.text) + "\n";
  }
  return text;
}

/// Prints the steps that the container would take, as numbered lines or as
/// {"steps": [{"name", "text", "members"}], "warnings": []}.
Result<int> dry_run(Session& session, engine::Asked asked, TransferDisplay& display,
                    std::string_view format) {
  engine::PlannedRun plan =
      TRY(engine::plan_run(session.context, std::move(asked), display.progress()));
  display.finish();
  if (format == "json") {
    print_json(session, to_json(plan));
    return 0;
  }
  for (const std::string& warning : plan.warnings) session.report.warn(warning);
  print(session, to_text(plan));
  return 0;
}

// ---- explain ------------------------------------------------------------------------------------

struct ExplainOptions {
  std::string format = "text";
  bool slurm = false;
};

FlagTable explain_flags(ExplainOptions& o) {
  return {
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
      {"slurm", 0, "", "CONTAINER is JOB.STEP, a Slurm step on this node", &o.slurm}};
}

void show(Session& session, const engine::Explained& explained, std::string_view format) {
  if (format == "json") return print_json(session, explain_json(explained));
  print(session, explain_text(explained, columns_of(session)));
}

Result<int> run_explain(Session& session, const ExplainOptions& o, Arguments arguments) {
  std::string name = arguments[0];
  if (o.slurm) name = TRY(engine::container_of_step(session.context, name));
  show(session, TRY(engine::explain_container(session.context, name)), o.format);
  return 0;
}

/// Prints what the container would get of GPUs and why, as `berth explain` does; starts nothing.
Result<int> explain_run(Session& session, engine::Asked asked, TransferDisplay& display,
                        std::string_view format) {
  engine::Explained explained =
      TRY(engine::explain_run(session.context, std::move(asked), display.progress()));
  display.finish();
  show(session, explained, format);
  return 0;
}

// ---- run ----------------------------------------------------------------------------------------

FlagTable run_flags(RequestOptions& o) {
  FlagTable table{
      {"detach", 'd', "", "Run in the background and print the container's id", &o.call.detach},
  };
  add_request_flags(table, o);
  table.insert(
      table.end(),
      {{"dry-run", 0, "", "Show what would be done, without doing it", &o.dry_run},
       {"explain", 0, "", "Show which GPUs would be given and why; start nothing", &o.explain},
       choice_flag("format", "FORMAT", "Format for --dry-run and --explain: text or json",
                   &o.format, {"text", "json"})});
  sort_flags(table);
  return table;
}

Result<int> run_container(Session& session, const RequestOptions& o, Arguments arguments) {
  engine::Asked asked = TRY(read_request(session, o, std::move(arguments)));
  const engine::RunRequest& request = asked.request;
  bool talks = request.terminal && !o.call.detach && !o.dry_run && !o.explain;
  if (talks && request.interactive && !session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "'--tty' with '--interactive' needs a terminal on stdin",
                      "berth run -i, without -t");
  }
  TransferDisplay display(session, Stream::err, Direction::pull, o.call.quiet);
  if (o.explain) return explain_run(session, std::move(asked), display, o.format);
  if (o.dry_run) return dry_run(session, std::move(asked), display, o.format);
  engine::RunOutcome outcome =
      TRY(engine::run(session.context, std::move(asked), display.progress()));
  if (outcome.command_error) session.report.error(*outcome.command_error);
  if (outcome.stream_error) {
    session.report.error(*outcome.stream_error);
    if (outcome.status == 0) return 1;  // docker's
  }
  print_detached(session, outcome);
  print_reason(session, outcome);
  // As docker: prints the id of a container whose output is not shown.
  const auto& attach = o.call.attach;
  bool shows =
      attach.empty() ? !o.call.detach : attach != std::vector<std::string>(attach.size(), "stdin");
  if (!shows && !outcome.command_error) print(session, outcome.id + "\n");
  return outcome.status;
}

engine::NetworkUse networks(const RequestOptions& o) {
  if (o.dry_run || o.explain) return {};
  engine::NetworkUse use{.networks = o.network.more};
  if (!o.network.mode.empty()) use.networks.push_back(o.network.mode);
  return use;
}

// ---- create -------------------------------------------------------------------------------------

FlagTable create_flags(RequestOptions& o) {
  FlagTable table;
  add_request_flags(table, o);
  sort_flags(table);
  return table;
}

Result<int> run_create(Session& session, const RequestOptions& o, Arguments arguments) {
  engine::Asked asked = TRY(read_request(session, o, std::move(arguments)));
  TransferDisplay display(session, Stream::err, Direction::pull, o.call.quiet);
  std::string id =
      TRY(engine::create_container(session.context, std::move(asked), display.progress()));
  print(session, id + "\n");
  return 0;
}

// ---- update -------------------------------------------------------------------------------------

struct UpdateOptions {
  engine::Changes changes;
};

FlagTable update_flags(UpdateOptions& o) {
  engine::Limits& l = o.changes.limits;
  FlagTable table = limit_flags(l);
  table.insert(table.end(),
               {{"blkio-weight", 0, "NUMBER", "Block I/O weight, 10 to 1000", &l.blkio_weight},
                {"cpus", 0, "NUMBER", "Limit the number of CPUs, such as 1.5",
                 read_into(l.cpu_millis, engine::parse_cpus)},
                {"gpus", 0, "GPUS", "Replace the GPUs: all, N, device=LIST, from:CONTAINER or none",
                 &o.changes.gpus},
                {"memory", 'm', "BYTES", "Memory limit, such as 512m", read_bytes(l.memory_bytes)},
                {"pids-limit", 0, "NUMBER", "Limit the number of processes; -1 for no limit",
                 read_integer(l.pids)},
                {"restart", 0, "POLICY", "Restart: no, on-failure[:MAX], always or unless-stopped",
                 read_into(o.changes.restart, engine::parse_restart)}});
  sort_flags(table);
  return table;
}

Result<int> run_update(Session& session, const UpdateOptions& o, Arguments arguments) {
  if (o.changes.limits == engine::Limits() && !o.changes.restart && !o.changes.gpus) {
    return make_error(Kind::usage, "you must provide one or more flags when using this command",
                      "berth update --help");
  }
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::update_container(session.context, name, o.changes));
    print(session, name + "\n");
    return {};
  });
}

/// Of docker.
constexpr Elsewhere kUpdateElsewhere[] = {
    {"kernel-memory", "--memory, which counts the kernel's memory too",
     "Linux has had no such limit since 5.16"},
};

/// What run and create have besides their texts and functions.
constexpr Verb verb_with_image(VerbText text, Command (*command)()) {
  return {.text = text,
          .arity = {1},
          .needs = engine::Needs::user_namespace,
          .flags_end = FlagsEnd::at_first_argument,
          .elsewhere = kRequestElsewhere,
          .arguments_elsewhere = run_elsewhere,
          .error_status = 125,
          .footnote = network_footnote,
          .command = command};
}

}  // namespace

const Verb run_verb =
    verb_with_image({.name = "run",
                     .arguments = "IMAGE [COMMAND [ARG...]]",
                     .summary = "Create and start a container from an image",
                     .example = "berth run --rm -it --gpus all debian:12 bash",
                     .complete = Complete::image},
                    [] {
                      return make_command(run_flags, run_container, container_beside, request_arity,
                                          replaced_container, networks);
                    });
const Verb create_verb =
    verb_with_image({.name = "create",
                     .arguments = "IMAGE [COMMAND [ARG...]]",
                     .summary = "Create a container from an image without starting it",
                     .example = "berth create --name web -it debian bash",
                     .complete = Complete::image},
                    [] {
                      return make_command(create_flags, run_create, container_beside, request_arity,
                                          replaced_container);
                    });
const Verb update_verb{
    .text = {.name = "update",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Change limits, restart policy and GPUs of containers",
             .example = "berth update --memory 2g --restart always web",
             .complete = Complete::container},
    .arity = {1},
    .elsewhere = kUpdateElsewhere,
    .command = [] { return make_command(update_flags, run_update); },
};
const Verb explain_verb{
    .text = {.name = "explain",
             .arguments = "CONTAINER",
             .summary = "Explain why a container has the GPUs that it has, or why it failed",
             .example = "berth explain trainer",
             .complete = Complete::container},
    .arity = {1, 1},
    .command = [] { return make_command(explain_flags, run_explain); },
};

}  // namespace berth::cli
