// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/slurm/step.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

struct SlurmStepOptions {
  engine::SlurmStep step;
  std::string scope = "global";
};

FlagTable slurm_step_flags(SlurmStepOptions& o) {
  FlagTable table = {
      {"batch-script", 0, "FILE", "The job's batch script, to mount in the container",
       &o.step.batch_script},
      {"job", 0, "JOB.STEP", "Slurm job and step, such as 12.0", &o.step.job},
      {"program", 0, "NAME", "Program that the tasks run, to find its MPI library",
       &o.step.program},
      choice_flag("scope", "SCOPE", "Scope of container names: global or job", &o.scope,
                  {"global", "job"}),
  };
  for (const slurm::Option& option : slurm::options()) {
    table.push_back(
        {option.name, 0, option.argument == nullptr ? "" : option.argument, option.help,
         [&o, key = option.key](std::string_view text) { return o.step.asked.take(key, text); }});
  }
  return table;
}

Result<int> run_slurm_step(Session& session, const SlurmStepOptions& given,
                           std::vector<std::string> command) {
  engine::SlurmStep step = given.step;
  step.of_job = given.scope == "job";
  step.directory = session.working_directory;
  engine::Asked asked = TRY(engine::slurm_container(session.context, step));
  auto work = command.empty() ? engine::hold_slurm_step : engine::run_slurm_task;
  asked.request.command = std::move(command);
  TransferDisplay display(session, Stream::err, Direction::pull, false);
  engine::RunOutcome outcome =
      TRY(work(session.context, step, std::move(asked), display.progress()));
  if (outcome.command_error) session.report.error(*outcome.command_error);
  return outcome.status;
}

std::string beside_slurm_step(const SlurmStepOptions& o) {
  engine::SlurmStep step = o.step;
  step.of_job = o.scope == "job";
  return engine::joined_by(step);
}

}  // namespace

const Verb slurm_step_verb{
    .text = {.name = "slurm step",
             .arguments = "[COMMAND [ARG...]]",
             .summary = "Keep a job step's container (for spank_berth.so), or run a task in it",
             .example = "berth slurm step --job 12.0 --container-image debian:12"},
    .arity = {},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .error_status = 125,
    .command = [] { return make_command(slurm_step_flags, run_slurm_step, beside_slurm_step); },
};

}  // namespace berth::cli
