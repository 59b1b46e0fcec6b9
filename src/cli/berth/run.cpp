// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/explain_run.hpp"
#include "cli/berth/request_flags.hpp"
#include "cli/core/table.hpp"
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

/// Prints the steps in which the container would be started, as numbered lines or as
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
    if (outcome.status == 0) return 1;  // as docker does
  }
  print_detached(session, outcome);
  print_reason(session, outcome);
  // As docker does, prints the id of the container if its output is not shown.
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

}  // namespace berth::cli
