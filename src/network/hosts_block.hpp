// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/request.hpp"

/// The part of a container's /etc/hosts that names those in its networks. Pure.
namespace berth::network {

/// The lines for `lease`: of each network that has a name, every container of `leases` that is in
/// it, itself too, with its address and names. The bridge that has no name gives no lines, as with
/// docker. Names that could end a line are left out.
std::string peer_lines(const Lease& lease, const std::vector<Lease>& leases);

/// `hosts` with `lines` as its block between two comments, in the place of the blocks that were
/// there; without lines there is none. What the container has written elsewhere stays.
std::string with_block(std::string_view hosts, std::string_view lines);

}  // namespace berth::network
