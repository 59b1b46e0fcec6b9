// SPDX-License-Identifier: Apache-2.0
// slirp4netns and pasta, which connect an ordinary user's containers to the network.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "network/request.hpp"

namespace berth::engine {

/// Whether `help`, the output of `pasta --help`, is from a release of autumn 2024 or later, which
/// loses no data: such a release lists --map-guest-addr. The version cannot tell: `pasta --version`
/// prints "unknown version" on Debian 12, and nothing on Debian 13. Pure.
bool is_new_pasta(std::string_view help);

/// Sets mode and program of `request` to the helper for `asked`.
/// Errors: unsupported (neither is in PATH), denied and not_found (/dev/net/tun).
Result<void> choose_helper(const Context& context, const RunRequest& asked,
                           network::Request& request);

/// The same for the bridges of an ordinary user: the mode is kBridge, and one helper serves all
/// bridges.
Result<void> choose_outside(const Context& context, const RunRequest& asked,
                            network::Request& request);
/// The request that starts a holder (network/attach/holder.hpp). Errors: as above.
Result<network::Request> holder_request(const Context& context);

}  // namespace berth::engine
