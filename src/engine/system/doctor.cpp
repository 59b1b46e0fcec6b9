// SPDX-License-Identifier: Apache-2.0
#include "engine/system/doctor.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "doctor/gather.hpp"
#include "engine/context/paths.hpp"
#include "engine/context/privilege.hpp"
#include "engine/network/default_network.hpp"
#include "engine/network/network.hpp"

namespace berth::engine {
namespace {

// Variables in which schedulers give a job its id.
constexpr std::array<std::pair<const char*, const char*>, 6> kJobs = {{
    {"SLURM_JOB_ID", "Slurm job"},
    {"PBS_JOBID", "PBS job"},
    {"LSB_JOBID", "LSF job"},
    {"FLUX_JOB_ID", "Flux job"},
    {"_CONDOR_SLOT", "HTCondor slot"},
    {"JOB_ID", "Grid Engine job"},
}};

std::string job_of(const Environment& environment) {
  for (const auto& [variable, what] : kJobs) {
    auto value = environment.get_filled(variable);
    if (value) return std::string(what) + " " + escape_controls(*value);
  }
  return {};
}

/// Call before entering a user namespace, since helpers run as the caller.
void look_at_network(const Context& context, doctor::Inputs& inputs) {
  auto usual = default_network(context.environment, inputs.config_dir);
  if (!usual.ok()) return;  // the check of the policy reports it, or BERTH_NETWORK is wrong
  inputs.network = to_json_text(usual->network);
  auto checked = check_network(context, usual->network);
  if (!checked.ok()) inputs.no_network = checked.error();
}

}  // namespace

std::vector<doctor::Answer> examine(const Context& context, doctor::Scope scope) {
  doctor::Inputs inputs;
  inputs.scope = scope;
  inputs.libexec = context.paths.libexec;
  inputs.job = job_of(context.environment);
  // main runs this verb even if there is no path for the store, so the reason is reported here.
  auto paths = complete_paths(context.paths, context.environment, calling_user());
  if (!paths.ok()) inputs.no_home = paths.error();
  const Paths& known = paths.ok() ? *paths : context.paths;
  inputs.root = known.root;
  inputs.state = known.state;
  if (!known.config.empty()) inputs.config_dir = known.config;
  if (!known.cdi_directories.empty()) inputs.cdi_directories = known.cdi_directories;
  if (!known.driver_root.empty()) inputs.driver_root = known.driver_root;
  look_at_network(context, inputs);
  return doctor::examine(doctor::gather(inputs), scope);
}

}  // namespace berth::engine
