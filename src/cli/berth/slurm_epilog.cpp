// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/removal.hpp"
#include "engine/slurm/step.hpp"

namespace berth::cli {
namespace {

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

const Verb slurm_epilog_verb{
    .text = {.name = "slurm epilog",
             .summary = "Remove the containers that a job has left (for spank_berth.so)",
             .example = "berth slurm epilog --job 12"},
    .command = [] { return make_command(slurm_epilog_flags, run_slurm_epilog); },
};

}  // namespace berth::cli
