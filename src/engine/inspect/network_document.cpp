// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/network_document.hpp"

#include <map>

#include "network/address.hpp"
#include "network/publish.hpp"

namespace berth::engine {
namespace {

/// "80/tcp" → docker's value for the port, sorted as Go sorts maps.
using Ports = std::map<std::string, json::Value>;

std::string port_name(unsigned port, const std::string& protocol) {
  return std::to_string(port) + "/" + protocol;
}

void add_binding(json::Value& bindings, std::string host_ip, std::string host_port) {
  if (bindings.is_null()) bindings = json::Array{};
  bindings.get_if<json::Array>()->push_back(
      json::Object{{"HostIp", std::move(host_ip)}, {"HostPort", std::move(host_port)}});
}

json::Value to_object(Ports ports) {
  json::Object object;
  for (auto& [name, bindings] : ports) object.emplace_back(name, std::move(bindings));
  return object;
}

/// The host port for port number `index` of `publish`: "8080", "" for any free port, "8000-8010"
/// for a free port in this range.
std::string host_port_text(const network::Publish& publish, unsigned index) {
  if (publish.host_first == 0) return "";
  unsigned first = publish.host_first + index;
  bool choice = publish.count == 1 && publish.host_last > publish.host_first;
  return std::to_string(first) + (choice ? "-" + std::to_string(publish.host_last) : "");
}

json::Value present_ports(const std::vector<PortSummary>& summaries) {
  Ports ports;
  for (const PortSummary& port : summaries) {
    json::Value& bindings = ports[port_name(port.container_port, port.protocol)];
    if (port.host_port != 0) add_binding(bindings, port.host_ip, std::to_string(port.host_port));
  }
  return to_object(std::move(ports));
}

/// `six`: the lease that has the IPv6 address.
json::Value endpoint(const network::Endpoint& there, uint8_t prefix_length,
                     const JoinedNetwork& joined, const network::Lease& six) {
  json::Value aliases, asked;
  if (!there.names.empty() || !joined.aliases.empty()) {
    json::Array list;
    for (const std::string& name : joined.aliases) list.emplace_back(name);
    if (!there.names.empty()) list.emplace_back(there.names.back());  // the short id
    aliases = std::move(list);
  }
  if (!joined.address.empty()) asked = json::Object{{"IPv4Address", joined.address}};
  return json::Object{{"IPAMConfig", std::move(asked)},
                      {"Links", nullptr},
                      {"Aliases", std::move(aliases)},
                      {"NetworkID", there.network},
                      {"EndpointID", ""},
                      {"Gateway", there.gateway},
                      {"IPAddress", there.address},
                      {"IPPrefixLen", uint64_t{prefix_length}},
                      {"IPv6Gateway", six.ipv6_gateway},
                      {"GlobalIPv6Address", six.ipv6_address},
                      {"GlobalIPv6PrefixLen", uint64_t{six.ipv6_prefix_length}},
                      {"MacAddress", there.mac},
                      {"DriverOpts", nullptr}};
}

/// An entry for each network that the container is in, or will join at its next start.
json::Value joined_networks(const RunRequest& request, const network::Lease& lease) {
  json::Object networks;
  for (const JoinedNetwork& joined : request.networks) {
    network::Endpoint there;
    for (const network::Endpoint& one : lease.endpoints) {
      bool is_it = joined.name == (one.network.empty() ? "bridge" : one.name);
      if (is_it) there = one;
    }
    auto subnet = network::parse_subnet(there.subnet);
    uint8_t length = subnet ? subnet->prefix_length : 0;
    networks.emplace_back(joined.name, endpoint(there, length, joined, {}));
  }
  if (!networks.empty() || request.network == Network::container) return networks;
  network::Endpoint only;
  only.gateway = lease.gateway;
  only.address = lease.address;
  only.mac = lease.mac;
  networks.emplace_back(network_mode(request), endpoint(only, lease.prefix_length, {}, lease));
  return networks;
}

}  // namespace

std::string network_mode(const RunRequest& request) {
  if (request.network == Network::container) return "container:" + request.network_container;
  if (!request.networks.empty()) return request.networks.front().name;
  return to_json_text(request.network);
}

json::Value port_bindings(const RunRequest& request) {
  Ports ports;
  for (const network::Publish& publish : request.publish) {
    for (unsigned i = 0; i < publish.count; ++i) {
      add_binding(ports[port_name(publish.container_first + i, publish.protocol)],
                  publish.host_address, host_port_text(publish, i));
    }
  }
  return to_object(std::move(ports));
}

void add_exposed_ports(const RunRequest& request, oci::ContainerDefaults& config) {
  for (const std::string& text : request.expose) {
    auto exposed = network::parse_exposed(text);
    if (!exposed.ok()) continue;  // the request was checked
    for (unsigned port = exposed->first; port <= exposed->last; ++port) {
      config.exposed_ports[port_name(port, exposed->protocol)];
    }
  }
  for (const network::Publish& publish : request.publish) {
    for (unsigned i = 0; i < publish.count; ++i) {
      config.exposed_ports[port_name(publish.container_first + i, publish.protocol)];
    }
  }
}

json::Value network_settings(const ContainerFacts& facts) {
  bool alive = facts.state == "running" || facts.state == "paused";
  network::Lease lease = alive && facts.lease ? *facts.lease : network::Lease{};
  return json::Object{{"Bridge", ""},
                      {"SandboxID", ""},
                      {"HairpinMode", false},
                      {"LinkLocalIPv6Address", ""},
                      {"LinkLocalIPv6PrefixLen", 0},
                      {"Ports", alive ? present_ports(facts.ports) : json::Value(json::Object{})},
                      {"SandboxKey", ""},
                      {"SecondaryIPAddresses", nullptr},
                      {"SecondaryIPv6Addresses", nullptr},
                      {"EndpointID", ""},
                      {"Gateway", lease.gateway},
                      {"GlobalIPv6Address", lease.ipv6_address},
                      {"GlobalIPv6PrefixLen", uint64_t{lease.ipv6_prefix_length}},
                      {"IPAddress", lease.address},
                      {"IPPrefixLen", uint64_t{lease.prefix_length}},
                      {"IPv6Gateway", lease.ipv6_gateway},
                      {"MacAddress", lease.mac},
                      {"Networks", joined_networks(facts.request, lease)}};
}

}  // namespace berth::engine
