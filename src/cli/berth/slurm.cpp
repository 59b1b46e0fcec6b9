// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/removal.hpp"
#include "cli/berth/show/doctor_text.hpp"
#include "cli/berth/show/match_text.hpp"
#include "engine/node/preflight.hpp"
#include "engine/slurm/bundle.hpp"
#include "engine/slurm/conf_lines.hpp"
#include "engine/slurm/job_end.hpp"
#include "engine/slurm/job_fetch.hpp"
#include "engine/slurm/step.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

// ---- slurm features -----------------------------------------------------------------------------

struct SlurmFeaturesOptions {
  engine::SlurmRequest request;
  std::string format = "text";
};

FlagTable slurm_features_flags(SlurmFeaturesOptions& o) {
  return {
      file_flag("profile", 0, "Use a saved profile instead of this machine", &o.request.profile),
      {"node", 0, "NAME", "NodeName, or 'n[1-8]' for identical nodes", &o.request.name},
      {"gres-conf", 0, "", "Print the lines for gres.conf instead", &o.request.devices},
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
  };
}

json::Value to_json(const engine::SlurmNode& node, bool devices_known) {
  json::Array gres, devices;
  for (const engine::SlurmGres& one : node.gres) {
    gres.push_back(json::Object{{"type", one.type}, {"count", one.count}});
  }
  for (const engine::SlurmDevice& one : node.devices) {
    devices.push_back(
        json::Object{{"type", one.type}, {"files", json_strings(one.files)}, {"cores", one.cores}});
  }
  json::Value gres_conf;  // null: not requested
  if (devices_known) gres_conf = std::move(devices);
  return json::Object{{"node", node.name},
                      {"features", json_strings(node.features)},
                      {"gres", std::move(gres)},
                      {"gres_conf", std::move(gres_conf)},
                      {"synthetic", node.synthetic}};
}

Result<int> run_slurm_features(Session& session, const SlurmFeaturesOptions& o, Arguments) {
  engine::SlurmNode node = TRY(engine::slurm_node(session.context, o.request));
  if (o.format == "json") {
    print_json(session, to_json(node, o.request.devices));
    return 0;
  }
  if (node.synthetic) print(session, "# GPUs of a tree made for tests\n");
  print(session, o.request.devices ? gres_conf_lines(node) : slurm_conf_line(node));
  return 0;
}

// ---- slurm bundle -------------------------------------------------------------------------------

struct SlurmBundleOptions {
  std::string job;
  bool remove = false;
};

FlagTable slurm_bundle_flags(SlurmBundleOptions& o) {
  return {
      {"job", 0, "JOB.STEP", "Slurm job and step, such as 12.0", &o.job},
      {"remove", 0, "", "Remove the config.json that Slurm leaves behind for a task", &o.remove}};
}

Result<int> run_slurm_bundle(Session& session, const SlurmBundleOptions& o, Arguments arguments) {
  TRY(engine::run_slurm_bundle(session.context, {arguments[0], arguments[1], o.job, o.remove}));
  return 0;  // not reached: exec has replaced this process
}

// ---- slurm step ---------------------------------------------------------------------------------

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

// ---- slurm preflight ----------------------------------------------------------------------------

struct SlurmPreflightOptions {
  engine::PreflightRequest request;
  bool local = false;
  bool quiet = false;
  std::string format = "text";
};

FlagTable slurm_preflight_flags(SlurmPreflightOptions& o) {
  FlagTable table{
      file_flag("profile", 0, "Use a saved profile instead of this machine", &o.request.match.node),
      {"gpus", 0, "GPUS", "GPUs of the job, as for 'berth run'; none if it needs no GPU",
       &o.request.gpus},
      {"local", 0, "", "Look only in the store, not at a registry", &o.local},
      {"quiet", 'q', "", "Show only problems and warnings", &o.quiet},
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
  };
  add_registry_flags(table, o.request.match.access);
  return table;
}

Result<int> run_slurm_preflight(Session& session, const SlurmPreflightOptions& o,
                                Arguments arguments) {
  engine::PreflightRequest request = o.request;
  if (!arguments.empty()) request.image = arguments.front();
  request.match.look_up = o.local ? engine::LookUp::store : engine::LookUp::registry;
  engine::Preflight found = TRY(engine::preflight(session.context, request));
  if (o.format == "json") {
    print_json(session, doctor_json(found.answers));
  } else {
    print(session, doctor_text(found.answers, look_of(session, o.quiet)));
  }
  return found.refused ? kNothingRuns : 0;
}

// ---- slurm give ---------------------------------------------------------------------------------
// An internal command: `berth slurm step` starts it on a node that has the image of the step
// already, to serve nodes that lack the image.

Result<int> run_slurm_give(Session& session, const NoOptions&, Arguments) {
  TRY(engine::give_to_job(session.context));
  return 0;
}

// ---- slurm epilog -------------------------------------------------------------------------------

struct SlurmEpilogOptions {
  std::string job;
  std::string scope = "global";
};

FlagTable slurm_epilog_flags(SlurmEpilogOptions& o) {
  return {
      {"job", 0, "JOB", "Slurm job, such as 12", &o.job},
      choice_flag("scope", "SCOPE", "Scope of container names: global or job", &o.scope,
                  {"global", "job"}),
  };
}

Result<int> run_slurm_epilog(Session& session, const SlurmEpilogOptions& o, Arguments) {
  auto names = TRY(engine::containers_of_job(session.context, o.job, o.scope == "job"));
  return remove_containers(session, names, {.force = true}, engine::AnonymousVolumes::remove);
}

}  // namespace

const Verb slurm_features_verb{
    .text = {.name = "slurm features",
             .summary = "Print the slurm.conf or gres.conf lines for a node",
             .example = "berth slurm features --gres-conf"},
    .command = [] { return make_command(slurm_features_flags, run_slurm_features); },
};
const Verb slurm_bundle_verb{
    .text = {.name = "slurm bundle",
             .arguments = "ID BUNDLE",
             .summary = "Run the OCI bundle that slurmstepd has written for a task (for oci.conf)",
             .example = "berth slurm bundle --job %j.%s %n.%u.%j.%s.%t %b"},
    .arity = {2, 2},
    .store = Store::none,
    .error_status = 125,
    .command = [] { return make_command(slurm_bundle_flags, run_slurm_bundle); },
};
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
const Verb slurm_preflight_verb{
    .text = {.name = "slurm preflight",
             .arguments = "[IMAGE]",
             .summary = "Check whether a job can run on this node, before it starts",
             .example = "berth slurm preflight --gpus 4 app:1.0",
             .complete = Complete::image},
    .arity = {0, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(slurm_preflight_flags, run_slurm_preflight); },
};
const Verb slurm_give_verb{
    .text = {.name = "slurm give",
             .summary = "Give the image of a step to its other nodes",
             .example = "berth slurm give <order.json"},
    .hidden = true,
    .command = [] { return make_command(no_flags, run_slurm_give); },
};
const Verb slurm_epilog_verb{
    .text = {.name = "slurm epilog",
             .summary = "Remove the containers that a job has left (for spank_berth.so)",
             .example = "berth slurm epilog --job 12"},
    .command = [] { return make_command(slurm_epilog_flags, run_slurm_epilog); },
};

}  // namespace berth::cli
