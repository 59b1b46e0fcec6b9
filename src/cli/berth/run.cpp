// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/dry_run.hpp"
#include "cli/berth/elsewhere_arguments.hpp"
#include "cli/berth/explain_run.hpp"
#include "cli/berth/request_flags.hpp"
#include "cli/berth/request_options.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

struct RunOptions : RequestOptions {
  bool dry_run = false;
  bool explain = false;
  std::string format = "text";
};

FlagTable run_flags(RunOptions& o) {
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

Result<int> run_container(Session& session, const RunOptions& o, Arguments arguments) {
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

std::string beside_run(const RunOptions& o) {
  return container_beside(o);
}

std::string replaced(const RunOptions& o) {
  return o.dry_run || o.explain ? "" : replaced_container(o);
}

engine::NetworkUse networks(const RunOptions& o) {
  if (o.dry_run || o.explain) return {};
  engine::NetworkUse use{.networks = o.network.more};
  if (!o.network.mode.empty()) use.networks.push_back(o.network.mode);
  return use;
}

Arity arity(const RunOptions& o) {
  return request_arity(o);
}

}  // namespace

const Verb run_verb{
    .text = {.name = "run",
             .arguments = "IMAGE [COMMAND [ARG...]]",
             .summary = "Create and start a container from an image",
             .example = "berth run --rm -it --gpus all debian:12 bash",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .elsewhere = kRequestElsewhere,
    .arguments_elsewhere = run_elsewhere,
    .error_status = 125,
    .footnote = network_footnote,
    .command =
        [] {
          return make_command(run_flags, run_container, beside_run, arity, replaced, networks);
        },
};

}  // namespace berth::cli
