// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/explain.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/explain_run.hpp"
#include "cli/berth/show/explain_text.hpp"
#include "engine/run/run.hpp"
#include "engine/slurm/step.hpp"

namespace berth::cli {
namespace {

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

}  // namespace

Result<int> explain_run(Session& session, engine::Asked asked, TransferDisplay& display,
                        std::string_view format) {
  engine::Explained explained =
      TRY(engine::explain_run(session.context, std::move(asked), display.progress()));
  display.finish();
  show(session, explained, format);
  return 0;
}

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
