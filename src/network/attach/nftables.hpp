// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::network {

/// Executes `rules`, commands of nft(8), in this network namespace, atomically.
/// Errors: io, with nft's first line; denied.  Source: libnftables(3)
Result<void> apply_rules(const std::string& rules);

/// The chains of this network namespace for IPv4, without their rules, as nft(8) lists them.
/// Errors: io, denied.
Result<std::string> list_chains();
/// Chain `name` ("ip filter FORWARD") with its rules and their handles. Errors: io, denied.
Result<std::string> list_chain(const std::string& name);

}  // namespace berth::network
