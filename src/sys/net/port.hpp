// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::sys {

enum class Transport { tcp, udp };

/// Whether somebody could be given `port` of this machine at `address`, 4 bytes or 16 of IPv6,
/// now: binds it for a moment. `name` is for errors.
/// Errors: busy (somebody has it), denied (below ip_unprivileged_port_start), not_found (no such
/// address here), unsupported (no IPv6 here).  bind(2), ipv6(7)
Result<void> try_port(Transport transport, std::string_view address, uint16_t port,
                      const std::string& name);

}  // namespace berth::sys
