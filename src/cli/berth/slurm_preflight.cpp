// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/show/doctor_text.hpp"
#include "cli/berth/show/match_text.hpp"
#include "engine/node/preflight.hpp"

namespace berth::cli {
namespace {

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
    bool terminal = session.terminal.is_terminal(Stream::out);
    DoctorLook look;
    look.columns = terminal ? session.terminal.size(Stream::out).columns : 0;
    look.colour = terminal && !session.context.environment.get_filled("NO_COLOR");
    look.quiet = o.quiet;
    print(session, doctor_text(found.answers, look));
  }
  return found.refused ? kNothingRuns : 0;
}

}  // namespace

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

}  // namespace berth::cli
