// SPDX-License-Identifier: Apache-2.0
// The site's rules for a container that another engine has configured: Docker, podman, containerd,
// Slurm's oci.conf. Its config.json does not tell settings of the user from those of the image, so
// less is granted than for `berth run`. docs/policy.md. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/rules.hpp"

namespace berth::policy {

/// The facts in `spec` about a container: its annotations (as labels), its variables (all as those
/// of the image), the image if the engine names it, and the command. `caller` is the environment of
/// the runtime, which names the batch job. The calling user is not filled in.
Facts facts_of(const oci::Spec& spec, const std::vector<std::string>& caller);

/// Effects that need a look-up before they can be granted.
struct Lookups {
  std::vector<Given> nodes;      ///< paths, as for --device
  std::vector<Given> cdi_names;  ///< as for --device
  Chosen gpus;                   ///< as for --gpus
};

/// Applies `effects` to `spec`: mounts, variables, limits, hooks. `is_there` says whether a path of
/// the host exists. The engine decides user, network and removal, so they are not changed. An
/// existing variable is only changed by env-force, because its origin is unknown.
/// Errors: denied (a rule refuses the container), not_found (the source of a mount), usage (an
/// invalid text).
Result<Lookups> amend(const Effects& effects,
                      const std::function<bool(const std::string&)>& is_there, oci::Spec& spec);

}  // namespace berth::policy
