// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// Chooses a port of the host for each requested one: a port that no container of `leases` and no
/// listening process uses. "Any free port" means one from 49153 to 65535, as in docker.
/// Errors: busy (a port in use; the error names the container, if one uses it), denied (an ordinary
/// user requests a low port), not_found (an address that this machine does not have).
Result<std::vector<Published>> choose_ports(const std::vector<Publish>& wanted,
                                            const std::vector<Lease>& leases);

}  // namespace berth::network
