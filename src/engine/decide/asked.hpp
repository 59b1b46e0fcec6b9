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

/// A container as flags, an environment file or a step of Slurm ask for it: names of containers,
/// networks, images and variables are still names. resolve() makes a Resolved of it.
struct Asked {
  RunRequest request;
  RunCall call;
  std::optional<NetworkFlags> network;  ///< none: `request` says which network
  std::optional<MpiFlags> mpi;          ///< none: `request` says it
  /// Of an environment file; their values may refer to variables of the image.
  std::map<std::string, edf::Text> variables;
  /// "NAME=value", which the container has where neither its image nor `request` names it.
  std::vector<std::string> fallback_environment;
};

}  // namespace berth::engine
