// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "network/address.hpp"
#include "network/request.hpp"
#include "network/rules.hpp"

/// What the leases contain about each network. Pure.
namespace berth::network {

/// Whether it is a valid id of a network: it becomes part of interface and table names.
bool is_id(const std::string& id);

/// The bridge and tables of the network with this id, or, for "", of the unnamed bridge that
/// belongs to the leases in `directory`.
Names names_of(const std::string& directory, const std::string& network);

/// Also for leases of older versions, which had one bridge; none for a user-mode network.
std::vector<Endpoint> endpoints_of(const Lease& lease);

/// The endpoint with a way out and the published ports; null without one.
const Endpoint* way_out(const std::vector<Endpoint>& endpoints);

/// Updates the members of a lease that others read.
void show_endpoint(Lease& lease);

/// Published ports as seen in the holder's namespace.
std::vector<Published> inner_ports(const std::vector<Published>& ports);

/// A network with containers, with its leases in the form of RuleInputs.
struct Used {
  Names names;
  Subnet subnet;
  bool internal = false;
  std::vector<Lease> leases;
};
std::vector<Used> networks_in_use(const std::string& directory, const std::vector<Lease>& leases);

}  // namespace berth::network
