// SPDX-License-Identifier: Apache-2.0
// `berth slurm`: configuration lines for the administrator of Slurm, and checks before a job spends
// time.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/node/slurm_features.hpp"

namespace berth::engine {

struct SlurmRequest {
  std::optional<std::string> profile;  ///< a saved profile; none: this machine
  std::optional<std::string> name;     ///< NodeName; none: of the profile, up to the first dot
  /// Also write the lines of gres.conf, which need more than a saved profile contains.
  bool devices = false;
};

/// The lines of slurm.conf, and of gres.conf if requested, for a node. A GPU in MIG mode with
/// unknown slices is skipped with a warning.
/// Errors: usage (an invalid name, devices of a saved profile); those of node_of(),
/// list_gpus().
Result<SlurmNode> slurm_node(const Context& context, const SlurmRequest& request);

}  // namespace berth::engine
