// SPDX-License-Identifier: Apache-2.0
// The files with names that a container gets: resolv.conf(5) and hosts(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/request.hpp"

namespace berth::network {

/// The addresses of the nameserver lines of a resolv.conf(5), in their order.
std::vector<std::string> nameservers_of(std::string_view resolv_conf);

/// Those that a container with only IPv4 can reach: no IPv6, and no loopback address, which in
/// the container is the container itself.
std::vector<std::string> reachable(const std::vector<std::string>& nameservers);

/// The same for a container with only IPv6: no IPv4, no loopback, and no link-local address of the
/// host (fe80::/10).
std::vector<std::string> reachable_by_ipv6(const std::vector<std::string>& nameservers);

/// Docker's default if the host has no nameserver that a container can reach.
std::vector<std::string> fallback_nameservers();

/// `resolv_conf` with other nameservers; its other lines (search, options) stay.
std::string with_nameservers(std::string_view resolv_conf,
                             const std::vector<std::string>& nameservers);

/// Placeholders in berth's hosts(5) for addresses that are not known yet: of the container itself,
/// and of the host for "host-gateway".
inline constexpr std::string_view kOwnAddress = "127.0.1.1";
inline constexpr std::string_view kHostGateway = "host-gateway";

/// `hosts` with these mountpoints replaced by `own` and `host`.
std::string with_addresses(std::string_view hosts, std::string_view own, std::string_view host);

// The part of a container's /etc/hosts with its network peers. Pure.

/// The lines for `lease`: for each named network, every container of `leases` in it, itself
/// included, with its address and names. The unnamed bridge gives no lines, as in docker. Leaves
/// out names that could end a line.
std::string peer_lines(const Lease& lease, const std::vector<Lease>& leases);

/// `hosts` with `lines` as its block between two comments, replacing old blocks; without lines
/// there is none. Other changes by the container stay.
std::string with_block(std::string_view hosts, std::string_view lines);

}  // namespace berth::network
