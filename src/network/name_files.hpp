// SPDX-License-Identifier: Apache-2.0
// The text of the files with names that a container gets: resolv.conf(5) and hosts(5). Which name
// servers it gets: attach/nameservers.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/request.hpp"

namespace berth::network {

/// The addresses in the nameserver lines of a resolv.conf(5), in the order of the lines.
std::vector<std::string> nameservers_of(std::string_view resolv_conf);

/// Those of `nameservers` that a container with only IPv4 can reach: no IPv6 addresses, and no
/// loopback addresses, which inside the container mean the container itself.
std::vector<std::string> reachable(const std::vector<std::string>& nameservers);

/// Those of `nameservers` that a container with only IPv6 can reach: no IPv4 addresses, no
/// loopback, and no link-local address of the host (fe80::/10).
std::vector<std::string> reachable_by_ipv6(const std::vector<std::string>& nameservers);

/// Docker's default if the host has no nameserver that a container can reach.
std::vector<std::string> fallback_nameservers();

/// `resolv_conf` with other nameservers; its other lines (search, options) stay.
std::string with_nameservers(std::string_view resolv_conf,
                             const std::vector<std::string>& nameservers);

/// What berth writes into the hosts(5) file instead of an address that is not known yet: that of
/// the container itself, and that of the host for "host-gateway".
inline constexpr std::string_view kOwnAddress = "127.0.1.1";
inline constexpr std::string_view kHostGateway = "host-gateway";

/// `hosts` with kOwnAddress replaced by `own` and kHostGateway by `host`.
std::string with_addresses(std::string_view hosts, std::string_view own, std::string_view host);

// The part of a container's /etc/hosts that lists its network peers. Pure.

/// The lines for `lease`: for each of its named networks, the address and names of every container
/// of `leases` in that network, its own included. The unnamed bridge gives no lines, as in docker.
/// Leaves out names that could end a line.
std::string peer_lines(const Lease& lease, const std::vector<Lease>& leases);

/// `hosts` with `lines` as a block between two comments, which replaces old blocks; if `lines` is
/// empty, there is no block. Other changes by the container stay.
std::string with_block(std::string_view hosts, std::string_view lines);

}  // namespace berth::network
