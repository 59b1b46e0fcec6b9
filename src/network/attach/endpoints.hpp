// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "network/address.hpp"
#include "network/request.hpp"
#include "network/rules.hpp"

/// What the leases contain about each network. Pure.
namespace berth::network {

/// Whether `id` is a valid id of a network. Ids become part of interface and table names.
bool is_id(const std::string& id);

/// The bridge and tables of the network with this id, or, for "", of the unnamed bridge that
/// belongs to the leases in `directory`.
InterfaceNames names_of(const std::string& directory, const std::string& network);

/// The endpoints of `lease`, also of one from an older version, which had one bridge. A lease of a
/// user-mode network has none.
std::vector<Endpoint> endpoints_of(const Lease& lease);

/// The endpoint that has a way out and the published ports; null if there is none.
const Endpoint* way_out(const std::vector<Endpoint>& endpoints);

/// Copies address, MAC, interface, … of the endpoint with a way out, or of the first, into `lease`.
void show_endpoint(Lease& lease);

/// Published ports as seen in the holder's namespace.
std::vector<Published> inner_ports(const std::vector<Published>& ports);

/// A network that has containers, and its leases as in RuleInputs.
struct Used {
  InterfaceNames names;
  Subnet subnet;
  bool internal = false;
  std::vector<Lease> leases;
};
std::vector<Used> networks_in_use(const std::string& directory, const std::vector<Lease>& leases);

}  // namespace berth::network
