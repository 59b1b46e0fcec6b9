// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/slurm/bundle.hpp"

namespace berth::cli {
namespace {

struct SlurmBundleOptions {
  std::string job;
  bool remove = false;
};

FlagTable slurm_bundle_flags(SlurmBundleOptions& o) {
  return {{"job", 0, "JOB.STEP", "Slurm job and step, such as 12.0", &o.job},
          {"remove", 0, "", "Remove the config.json that Slurm leaves of a task", &o.remove}};
}

Result<int> run_slurm_bundle(Session& session, const SlurmBundleOptions& o, Arguments arguments) {
  TRY(engine::run_slurm_bundle(session.context, {arguments[0], arguments[1], o.job, o.remove}));
  return 0;  // this process is another program by now
}

}  // namespace

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

}  // namespace berth::cli
