// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

inline constexpr const char* kNetworkVariable = "BERTH_NETWORK";

/// The network of a container without --network, and its source.
struct DefaultNetwork {
  Network network = Network::bridge;
  std::string
      source;  ///< kNetworkVariable, "the policy of this machine", "a batch job", "built in"
};

/// The first of: BERTH_NETWORK in `environment`; network.default of the policy in the directory
/// `config`; "host" in a job of a batch system, as with pyxis; "bridge", as with Docker
/// (docs/decisions/0176).
/// Errors: usage (BERTH_NETWORK is not a network), those of policy::read_compiled().
Result<DefaultNetwork> default_network(const Environment& environment, const std::string& config);

}  // namespace berth::engine
