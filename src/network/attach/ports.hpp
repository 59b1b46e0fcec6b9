// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// A port of the host for each that is asked for: none that a container of `leases` has, and none
/// that somebody listens on now. "Any" is one of 49153 to 65535, as with docker.
/// Errors: busy (a port in use; names the container that has it, if one does), denied (a low port
/// and an ordinary user), not_found (an address that this machine has not).
Result<std::vector<Published>> settle_ports(const std::vector<Publish>& wanted,
                                            const std::vector<Lease>& leases);

}  // namespace berth::network
