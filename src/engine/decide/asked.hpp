// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edf/definition.hpp"
#include "engine/decide/mpi_launch.hpp"
#include "engine/network/network.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// A container as flags, an environment file or a Slurm step ask for it: containers, networks,
/// images and variables are still names. resolve() makes a Resolved from it.
struct Asked {
  RunRequest request;
  RunCall call;
  std::optional<NetworkFlags> network;  ///< none: `request` has the network
  std::optional<MpiFlags> mpi;          ///< none: `request` has it
  /// From an environment file; values may refer to variables of the image.
  std::map<std::string, edf::Text> variables;
  /// "NAME=value", set unless the image or `request` names the variable.
  std::vector<std::string> fallback_environment;
};

}  // namespace berth::engine
