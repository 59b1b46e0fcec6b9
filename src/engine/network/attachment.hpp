// SPDX-License-Identifier: Apache-2.0
// A container's place in a named network: its names for other containers, its addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "network/request.hpp"

namespace berth::engine {

/// The attachments of container `id` for berth-network: one for each network of `request`. Errors:
/// not_found (a network was removed).
Result<std::vector<network::Attachment>> attachments_of(const Context& context,
                                                        const RunRequest& request,
                                                        const std::string& id);
Result<network::Attachment> attachment_of(const Context& context, const JoinedNetwork& joined,
                                          const std::optional<std::string>& name,
                                          const std::string& id);

/// Parses a value of --network that is not a keyword: NAME, or "name=NAME,alias=ALIAS,ip=ADDRESS,
/// mac-address=ADDRESS". The network must exist. Errors: not_found, usage, those of find_network().
Result<JoinedNetwork> parse_joined_network(const Context& context, std::string_view text);

/// Converts a MAC address to the form in records: "02:42:ac:11:00:09". Errors: usage.
Result<std::string> read_mac(std::string_view text);

/// Checks a name by which other containers of the network find a container. Errors: usage.
Result<void> check_network_alias(std::string_view alias);

}  // namespace berth::engine
