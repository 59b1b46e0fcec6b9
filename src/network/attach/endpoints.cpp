// SPDX-License-Identifier: Apache-2.0
#include "network/attach/endpoints.hpp"

#include <map>

namespace berth::network {

bool is_id(const std::string& id) {
  return id.size() == 64 && id.find_first_not_of("0123456789abcdef") == id.npos;
}

InterfaceNames names_of(const std::string& directory, const std::string& network) {
  return network.empty() ? names_for(directory) : names_for_network(network);
}

std::vector<Endpoint> endpoints_of(const Lease& lease) {
  if (!lease.endpoints.empty() || lease.interface.empty()) return lease.endpoints;
  Endpoint only;
  only.gateway = lease.gateway;
  only.address = lease.address;
  only.mac = lease.mac;
  only.interface = lease.interface;
  auto gateway = parse_ipv4(lease.gateway);
  Subnet subnet{0, lease.prefix_length};
  subnet.base = gateway.value_or(0) & subnet.mask();
  only.subnet = subnet.text();
  only.inside = "eth0";
  return {only};
}

const Endpoint* way_out(const std::vector<Endpoint>& endpoints) {
  for (const Endpoint& one : endpoints) {
    if (!one.internal) return &one;
  }
  return nullptr;
}

void show_endpoint(Lease& lease) {
  const Endpoint* shown = way_out(lease.endpoints);
  if (shown == nullptr && !lease.endpoints.empty()) shown = &lease.endpoints.front();
  Endpoint none;
  if (shown == nullptr) shown = &none;
  lease.address = shown->address;
  lease.gateway = shown->gateway;
  if (lease.outside.empty()) lease.host = shown->gateway;  // else the gateway is not the host
  lease.mac = shown->mac;
  lease.interface = shown->interface;
  lease.prefix_length = parse_subnet(shown->subnet).value_or(Subnet()).prefix_length;
}

std::vector<Published> inner_ports(const std::vector<Published>& ports) {
  std::vector<Published> inner = ports;
  for (Published& port : inner) {
    // A port published at one address of the host is not reachable from other networks.
    if (port.host_address != "0.0.0.0") port.host_address = kFromOutside;
    port.host_port = port.inner_port;
  }
  return inner;
}

std::vector<Used> networks_in_use(const std::string& directory, const std::vector<Lease>& leases) {
  std::map<std::string, Used> networks;
  for (const Lease& lease : leases) {
    std::vector<Endpoint> endpoints = endpoints_of(lease);
    const Endpoint* out = way_out(endpoints);
    for (const Endpoint& one : endpoints) {
      Used& used = networks[one.network];
      used.names = names_of(directory, one.network);
      used.subnet = parse_subnet(one.subnet).value_or(Subnet());
      used.internal = one.internal;
      Lease here = lease;
      here.address = one.address;
      here.mac = one.mac;
      here.interface = one.interface;
      if (&one != out) here.ports.clear();
      if (!lease.outside.empty()) here.ports = inner_ports(here.ports);
      used.leases.push_back(std::move(here));
    }
  }
  std::vector<Used> found;
  for (auto& [id, used] : networks) found.push_back(std::move(used));
  return found;
}

}  // namespace berth::network
