// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

/// Connects containers, running or not, to networks, and disconnects them.
namespace berth::engine {

/// Adds container `reference` to network `joined`, now and for the container's next starts. An
/// error changes nothing.
/// Errors: not_found (network, container), exists (the container is connected already), usage (the
/// network is host or none; the container has another kind of network), unsupported (an ordinary
/// user's container that was started without a named network; a container without a saved request),
/// those of berth-network.
Result<void> connect_network(const Context& context, const JoinedNetwork& joined,
                             std::string_view reference);

/// The reverse; a container without any network left has only loopback.
/// Errors: as above, not_found (the container is not connected).
Result<void> disconnect_network(const Context& context, std::string_view network,
                                std::string_view reference);

}  // namespace berth::engine
