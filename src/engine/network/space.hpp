// SPDX-License-Identifier: Apache-2.0
// The user namespace in which an ordinary user's networks with names are (docs/decisions/0178).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// What of a call may be about networks with names.
struct NetworkUse {
  std::vector<std::string> networks = {};    ///< texts of --network
  std::vector<std::string> containers = {};  ///< that are about to start
  bool running = false;                      ///< containers that run change their networks
};

/// In the place of enter_identity() for Needs::user_namespace, before it, where `use` is about
/// networks with names: an ordinary user enters the user namespace that all containers in such
/// networks have, and makes it, with its holder, where none is to be started in one yet. Nothing:
/// enter_identity() decides, because nobody asks for such a network, or the caller is in a
/// namespace already. Errors: those of enter_identity(), of berth-network, unsupported (neither
/// slirp4netns nor pasta).
Result<std::optional<Identity>> join_network_users(const Context& context, const NetworkUse& use);

}  // namespace berth::engine
