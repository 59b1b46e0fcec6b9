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
/// loses no data: it lists --map-guest-addr. `pasta --version` does not help: on Debian 12 it
/// prints "unknown version", on Debian 13 nothing. Pure.
bool is_new_pasta(std::string_view help);

/// Sets mode and program of `request` to the helper for `asked`.
/// Errors: unsupported (neither is in PATH), denied and not_found (/dev/net/tun).
Result<void> choose_helper(const Context& context, const RunRequest& asked,
                           network::Request& request);

/// The same for an ordinary user's bridges: mode is kBridge, and one helper serves all of them.
Result<void> choose_outside(const Context& context, const RunRequest& asked,
                            network::Request& request);
/// The request that starts a holder (network/attach/holder.hpp). Errors: as above.
Result<network::Request> holder_request(const Context& context);

}  // namespace berth::engine
