// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/explain.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/explain_run.hpp"
#include "cli/berth/explain_text.hpp"
#include "engine/slurm/step.hpp"

namespace berth::cli {
namespace {

struct ExplainOptions {
  std::string format = "text";
  bool slurm = false;
};

FlagTable explain_flags(ExplainOptions& o) {
  return {
      choice_flag("format", "FORMAT", "As text or as json", &o.format, {"text", "json"}),
      {"slurm", 0, "", "CONTAINER is JOB.STEP: that of a step of Slurm's on this node", &o.slurm}};
}

void show(Session& session, const engine::Explained& explained, std::string_view format) {
  if (format == "json") return print_json(session, explain_json(explained));
  bool terminal = session.terminal.is_terminal(Stream::out);
  size_t columns = terminal ? session.terminal.size(Stream::out).columns : 0;
  print(session, explain_text(explained, columns));
}

Result<int> run_explain(Session& session, const ExplainOptions& o, Arguments arguments) {
  std::string name = arguments[0];
  if (o.slurm) name = TRY(engine::container_of_step(session.context, name));
  show(session, TRY(engine::explain_container(session.context, name)), o.format);
  return 0;
}

}  // namespace

Result<int> explain_run(Session& session, const engine::RunRequest& request,
                        const engine::RunCall& call, TransferDisplay& display,
                        std::string_view format) {
  engine::Explained explained =
      TRY(engine::explain_run(session.context, request, call, display.progress()));
  display.finish();
  show(session, explained, format);
  return 0;
}

const Verb explain_verb{
    .text = {.name = "explain",
             .arguments = "CONTAINER",
             .summary =
                 "Show why a container has the GPUs that it has, or has none, or why it failed",
             .example = "berth explain trainer",
             .complete = Complete::container},
    .arity = {1, 1},
    .command = [] { return make_command(explain_flags, run_explain); },
};

}  // namespace berth::cli
