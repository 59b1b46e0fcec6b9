// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// A port of the host for each requested one, used by no container of `leases` and no listening
/// process. "Any" is one of 49153 to 65535, as in docker.
/// Errors: busy (a port in use; names the container, if it is one), denied (a low port and an
/// ordinary user), not_found (an address that this machine does not have).
Result<std::vector<Published>> assign_ports(const std::vector<Publish>& wanted,
                                            const std::vector<Lease>& leases);

}  // namespace berth::network
