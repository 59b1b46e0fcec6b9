// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

/// Putting containers into networks and taking them out, running or not.
namespace berth::engine {

/// From now on, and in its next starts, container `reference` is in network `joined` too. Nothing
/// has changed after an error.
/// Errors: not_found (network, container), exists (it is in there), usage (host, none, a container
/// with another kind of network), unsupported (an ordinary user's that
/// was started in no network with a name; a container that keeps no list),
/// those of berth-network.
Result<void> connect_network(const Context& context, const JoinedNetwork& joined,
                             std::string_view reference);

/// The other way round; one without any network left has loopback alone.
/// Errors: as above, not_found (it is not in there).
Result<void> disconnect_network(const Context& context, std::string_view network,
                                std::string_view reference);

}  // namespace berth::engine
