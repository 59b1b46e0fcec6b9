// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::sys {

enum class Transport { tcp, udp };

/// Checks that `port` of this machine is free now at `address` (4 bytes, or 16 for IPv6), by
/// binding it for a moment. `name` is for errors.
/// Errors: busy (it is in use), denied (below ip_unprivileged_port_start), not_found (no such
/// address here), unsupported (no IPv6 here).  bind(2), ipv6(7)
Result<void> try_port(Transport transport, std::string_view address, uint16_t port,
                      const std::string& name);

}  // namespace berth::sys
