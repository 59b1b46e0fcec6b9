// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/request.hpp"

/// The part of a container's /etc/hosts with its network peers. Pure.
namespace berth::network {

/// The lines for `lease`: for each named network, every container of `leases` in it, itself
/// included, with its address and names. The unnamed bridge gives no lines, as in docker. Leaves
/// out names that could end a line.
std::string peer_lines(const Lease& lease, const std::vector<Lease>& leases);

/// `hosts` with `lines` as its block between two comments, replacing old blocks; without lines
/// there is none. Other changes by the container stay.
std::string with_block(std::string_view hosts, std::string_view lines);

}  // namespace berth::network
