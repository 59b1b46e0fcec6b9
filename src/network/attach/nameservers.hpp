// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

/// Which name servers a container gets without --dns. systemd-resolved listens at a loopback
/// address, which no container can reach, and writes the real name servers into a file of its own.
namespace berth::network {

/// For a bridge of root: those of the host that the container can reach, else 8.8.8.8 and 8.8.4.4,
/// as with docker.  Errors: io, denied.
Result<std::vector<std::string>> nameservers_of_bridge();

/// For pasta, which answers at the addresses `four` and `six`, and asks a name server of the host
/// of the same IP version. An empty `four` means that the container has no IPv4; it has IPv6.
/// Errors: io, denied.
Result<std::vector<std::string>> nameservers_of_pasta(const std::string& four,
                                                      const std::string& six);

}  // namespace berth::network
