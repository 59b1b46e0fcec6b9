// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

/// Connects containers to networks and disconnects them, running or not.
namespace berth::engine {

/// Adds container `reference` to network `joined`, now and for its next starts. After an error
/// nothing has changed.
/// Errors: not_found (network, container), exists (it is connected), usage (host, none, a container
/// with another kind of network), unsupported (an ordinary user's that was started without a named
/// network; a container without a saved request), those of berth-network.
Result<void> connect_network(const Context& context, const JoinedNetwork& joined,
                             std::string_view reference);

/// The reverse; a container without any network left has only loopback.
/// Errors: as above, not_found (it is not connected).
Result<void> disconnect_network(const Context& context, std::string_view network,
                                std::string_view reference);

}  // namespace berth::engine
