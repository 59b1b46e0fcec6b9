// SPDX-License-Identifier: Apache-2.0
// The site's rules for a container that another engine has configured: Docker, podman, containerd,
// Slurm's oci.conf. Its config.json mixes the words of user and image, so less is known, and less
// is given, than for `berth run`. docs/policy.md. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/rules.hpp"

namespace berth::policy {

/// What `spec` tells of a container: its annotations as labels, its variables, whoever's they are,
/// as the image's, the image where the engine names it, the command. `caller`: the variables that
/// the runtime was called with, for the batch job. Who calls is left to the caller to fill in.
Facts facts_of(const oci::Spec& spec, const std::vector<std::string>& caller);

/// What has to be looked up before it can be given.
struct Lookups {
  std::vector<Given> nodes;      ///< paths of --device
  std::vector<Given> cdi_names;  ///< of --device
  Chosen gpus;                   ///< of --gpus
};

/// Lays `effects` into `spec`: mounts, variables, limits, hooks. `is_there` tells whether a path of
/// the host is. User, network and removal are the engine's, and stay as they are; so does a
/// variable that is there, but for env-force, because nobody can tell whose it is.
/// Errors: denied (a rule refuses the container), not_found (the source of a mount), usage (a text
/// that is none).
Result<Lookups> amend(const Effects& effects,
                      const std::function<bool(const std::string&)>& is_there, oci::Spec& spec);

}  // namespace berth::policy
