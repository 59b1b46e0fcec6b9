// SPDX-License-Identifier: Apache-2.0
// The site's rules for a container that another engine has configured: Docker, podman, containerd,
// Slurm's oci.conf. Its config.json mixes settings of user and image, so less is known, and less is
// granted, than for `berth run`. docs/policy.md. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/rules.hpp"

namespace berth::policy {

/// The facts in `spec` about a container: its annotations as labels, its variables, from any
/// source, as the image's, the image if the engine names it, the command. `caller`: the environment
/// of the runtime's call, for the batch job. The caller of this function fills in the calling user.
Facts facts_of(const oci::Spec& spec, const std::vector<std::string>& caller);

/// Effects that need a look-up before they can be granted.
struct Lookups {
  std::vector<Given> nodes;      ///< paths of --device
  std::vector<Given> cdi_names;  ///< of --device
  Chosen gpus;                   ///< of --gpus
};

/// Applies `effects` to `spec`: mounts, variables, limits, hooks. `is_there` checks a path of the
/// host. User, network and removal are the engine's, and unchanged; so is an existing variable,
/// except by env-force, because its origin is unknown.
/// Errors: denied (a rule refuses the container), not_found (the source of a mount), usage (an
/// invalid text).
Result<Lookups> amend(const Effects& effects,
                      const std::function<bool(const std::string&)>& is_there, oci::Spec& spec);

}  // namespace berth::policy
