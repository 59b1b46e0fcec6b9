// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "network/request.hpp"

namespace berth::network {

/// The ids of the named networks that `lease` is in.
std::set<std::string> networks_of(const Lease& lease);

/// For each of `leases` that is in one of `networks`, rewrites the block of names (names.hpp) in
/// the container's hosts file. It does so in place, because the container has the file mounted. The
/// caller holds the lock of the leases. The container's root may have changed such a file: one that
/// cannot be rewritten is left unchanged, and does not affect the others.
void send_to_peers(const std::vector<Lease>& leases, const std::set<std::string>& networks);

/// Removes the block of names from a container's file.
void forget_peers(const std::string& hosts_file);

}  // namespace berth::network
