// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::network {

/// Carries out `rules`, the words of nft(8), in this network namespace: all of them or none.
/// Errors: io, with nft's first line; denied.  Source: libnftables(3)
Result<void> apply_rules(const std::string& rules);

/// All rules of this network namespace that IPv4 passes, as nft(8) lists them. Errors: io, denied.
Result<std::string> list_rules();

}  // namespace berth::network
