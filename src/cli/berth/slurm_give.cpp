// SPDX-License-Identifier: Apache-2.0
// Not for people: what `berth slurm step` starts on a node that has its image already, for those
// that have not.
#include "cli/berth/common.hpp"
#include "engine/job_fetch.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string>) {
  TRY(engine::give_to_job(session.context));
  return 0;
}

}  // namespace

extern const Verb slurm_give_verb;
const Verb slurm_give_verb{
    .text = {.name = "slurm give",
             .arguments = "",
             .summary = "Give the image of a step to its other nodes",
             .example = "berth slurm give <order.json"},
    .arity = {0, 0},
    .hidden = true,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
