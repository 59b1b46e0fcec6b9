// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "network/request.hpp"

namespace berth::network {

/// The ids of the networks with names that `lease` is in.
std::set<std::string> networks_of(const Lease& lease);

/// Rewrites, in place, the block of names (hosts_block.hpp) in the hosts files of those of `leases`
/// that are in one of `networks`; in place, because the containers have the files mounted. Held by
/// the lock of the leases. What is in such a file may be the work of its container's root: one that
/// cannot be rewritten is left as it is, and stops no other.
void tell_peers(const std::vector<Lease>& leases, const std::set<std::string>& networks);

/// Takes the block of names away from a container's file.
void forget_peers(const std::string& hosts_file);

}  // namespace berth::network
