// SPDX-License-Identifier: Apache-2.0
// An internal command: `berth slurm step` starts it on a node that has its image already, for nodes
// that lack it.
#include "cli/berth/common.hpp"
#include "engine/slurm/job_fetch.hpp"

namespace berth::cli {
namespace {

Result<int> run_slurm_give(Session& session, const NoOptions&, Arguments) {
  TRY(engine::give_to_job(session.context));
  return 0;
}

}  // namespace

const Verb slurm_give_verb{
    .text = {.name = "slurm give",
             .summary = "Give the image of a step to its other nodes",
             .example = "berth slurm give <order.json"},
    .hidden = true,
    .command = [] { return make_command(no_flags, run_slurm_give); },
};

}  // namespace berth::cli
