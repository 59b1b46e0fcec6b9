// SPDX-License-Identifier: Apache-2.0
// `berth slurm`: what Slurm's administrator writes down of a node, and what a job asks before its
// time is spent.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/node/slurm_features.hpp"

namespace berth::engine {

struct SlurmRequest {
  std::optional<std::string> profile;  ///< a saved one; none: this machine
  std::optional<std::string> name;     ///< NodeName; none: the profile's, up to its first dot
  /// The lines of gres.conf too, which a saved profile does not know.
  bool devices = false;
};

/// What slurm.conf, and gres.conf where that is asked for, say of a node. A GPU in MIG mode whose
/// slices are not known is left out, with a warning.
/// Errors: usage (a name that is none, devices of a saved profile); those of node_of(),
/// list_gpus().
Result<SlurmNode> slurm_node(const Context& context, const SlurmRequest& request);

}  // namespace berth::engine
