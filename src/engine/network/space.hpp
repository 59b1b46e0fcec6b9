// SPDX-License-Identifier: Apache-2.0
// The user namespace of an ordinary user's named networks (docs/decisions/0178).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The ways in which a command may use named networks.
struct NetworkUse {
  std::vector<std::string> networks = {};    ///< values of --network
  std::vector<std::string> containers = {};  ///< containers about to start
  bool running = false;                      ///< the command changes networks of running containers
};

/// Call before enter_identity() for Needs::user_namespace. If `use` needs named networks, moves the
/// process of an ordinary user into the user namespace that all containers in named networks share.
/// If that does not exist and a container is about to start, creates it with its holder. Returns
/// nothing if no named network is used, or if the caller is in a user namespace already: then call
/// enter_identity().
/// Errors: those of enter_identity(), of berth-network, unsupported (neither slirp4netns nor
/// pasta).
Result<std::optional<Identity>> join_network_users(const Context& context, const NetworkUse& use);

}  // namespace berth::engine
