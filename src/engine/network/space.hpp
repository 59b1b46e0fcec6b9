// SPDX-License-Identifier: Apache-2.0
// The user namespace of an ordinary user's named networks (docs/decisions/0178).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// What a command may do with named networks.
struct NetworkUse {
  std::vector<std::string> networks = {};    ///< values of --network
  std::vector<std::string> containers = {};  ///< about to start
  bool running = false;                      ///< changes networks of running containers
};

/// Call before enter_identity() for Needs::user_namespace. If `use` needs named networks, an
/// ordinary user enters the user namespace that all containers in such networks share; it is
/// created, with its holder, if a container is about to start and there is none yet. Nothing: call
/// enter_identity(), because no named network is used, or the caller is in a namespace already.
/// Errors: those of enter_identity(), of berth-network, unsupported (neither slirp4netns nor
/// pasta).
Result<std::optional<Identity>> join_network_users(const Context& context, const NetworkUse& use);

}  // namespace berth::engine
