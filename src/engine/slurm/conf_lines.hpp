// SPDX-License-Identifier: Apache-2.0
// `berth slurm features`: lines of slurm.conf and gres.conf for Slurm's administrator.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/node/slurm_features.hpp"

namespace berth::engine {

struct SlurmRequest {
  std::optional<std::string> profile;  ///< a saved profile; none: this machine
  std::optional<std::string> name;     ///< NodeName; none: the profile's, up to its first dot
  /// Also the lines of gres.conf, which a saved profile does not contain.
  bool devices = false;
};

/// The lines of slurm.conf, and of gres.conf if requested, for a node. Skips a GPU in MIG mode
/// without known slices, with a warning.
/// Errors: usage (an invalid name, devices of a saved profile); those of node_of(),
/// list_gpus().
Result<SlurmNode> slurm_node(const Context& context, const SlurmRequest& request);

}  // namespace berth::engine
