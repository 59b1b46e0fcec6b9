// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "network/ipv4.hpp"
#include "network/request.hpp"
#include "network/rules.hpp"

/// What the leases say of each network. Pure.
namespace berth::network {

/// Whether it is the id of a network: it is made into names of interfaces and tables.
bool is_id(const std::string& id);

/// The bridge and tables of the network with this id, or, for "", of the bridge without a name that
/// belongs to the leases in `directory`.
Names names_of(const std::string& directory, const std::string& network);

/// Of a lease of a Berth that knew one bridge alone, too; none with a network of a user.
std::vector<Endpoint> endpoints_of(const Lease& lease);

/// The one that leads out and has the published ports; null where none does.
const Endpoint* way_out(const std::vector<Endpoint>& endpoints);

/// Puts what others read of a lease in the place of what is true no more.
void show_endpoint(Lease& lease);

/// Published ports as the holder's namespace sees them.
std::vector<Published> inner_ports(const std::vector<Published>& ports);

/// A network that has containers, with its leases as RuleInputs wants them.
struct Used {
  Names names;
  Subnet subnet;
  bool internal = false;
  std::vector<Lease> leases;
};
std::vector<Used> networks_in_use(const std::string& directory, const std::vector<Lease>& leases);

}  // namespace berth::network
