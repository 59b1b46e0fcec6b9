// SPDX-License-Identifier: Apache-2.0
#include "engine/network/query.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/context/document_values.hpp"
#include "engine/context/time.hpp"
#include "engine/network/leases.hpp"
#include "network/ipv4.hpp"

namespace berth::engine {
namespace {

bool is_usual(const NetworkRecord& network) {
  return network.created_ns == 0;
}

/// The endpoint of a container in the network; nothing if it is not connected.
std::optional<network::Endpoint> endpoint_in(const NetworkRecord& network,
                                             const network::Lease& lease) {
  bool is_bridge = is_usual(network) && network.name == kDefaultNetwork;
  for (const network::Endpoint& one : lease.endpoints) {
    if (is_bridge ? one.network.empty() : one.network == network.id) return one;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<NetworkRecord>> query_networks(const Context& context, const Filters& filters) {
  TRY(filters.check_keys({"dangling", "driver", "id", "label", "name", "scope", "type"}));
  TRY(filters.check_values("type", {"builtin", "custom"}));
  auto dangling = TRY(filters.flag("dangling"));
  std::vector<NetworkRecord> all = TRY(list_networks(context));
  all.insert(all.end(), usual_networks().begin(), usual_networks().end());
  std::set<std::string> used;
  if (dangling) {
    for (const auto& [id, lease] : list_leases(context)) {
      for (const network::Endpoint& one : lease.endpoints) used.insert(one.network);
    }
  }
  std::vector<NetworkRecord> found;
  for (NetworkRecord& one : all) {
    auto has_in = [](const std::string& text) {
      return [&text](const std::string& part) { return text.find(part) != std::string::npos; };
    };
    auto is = [](std::string_view text) {
      return [text](const std::string& wanted) { return wanted == text; };
    };
    bool fits = filters.fits("driver", is(one.driver)) && filters.fits("scope", is("local")) &&
                filters.fits("type", is(is_usual(one) ? "builtin" : "custom")) &&
                filters.fits("id", has_in(one.id)) && filters.fits("name", has_in(one.name)) &&
                filters.fits_labels(one.labels);
    bool is_dangling = !is_usual(one) && !used.contains(one.id);
    if (fits && (!dangling || is_dangling == *dangling)) found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(),
            [](const NetworkRecord& a, const NetworkRecord& b) { return a.name < b.name; });
  return found;
}

Result<std::string> inspect_network(const Context& context, const std::string& reference) {
  auto network = TRY(find_network(context, reference));
  if (!network) {
    return make_error(Kind::not_found, "No such network: " + escape_controls(reference),
                      "berth network ls");
  }
  std::map<std::string, std::string> names;
  for (const ContainerSummary& one : TRY(list_containers(context, Which::running))) {
    names[one.id] = one.name;
  }
  json::Object containers;
  std::string subnet = network->subnet, gateway = network->gateway;
  for (const auto& [id, lease] : list_leases(context)) {
    auto there = endpoint_in(*network, lease);
    if (!there) continue;
    subnet = there->subnet;
    gateway = there->gateway;
    auto parsed = network::parse_subnet(subnet);
    std::string length = parsed ? "/" + std::to_string(parsed->prefix_length) : "";
    containers.emplace_back(id, json::Object{{"Name", names[id]},
                                             {"EndpointID", ""},
                                             {"MacAddress", there->mac},
                                             {"IPv4Address", there->address + length},
                                             {"IPv6Address", ""}});
  }
  json::Array config;
  if (!subnet.empty()) {
    json::Object pool{{"Subnet", subnet}, {"Gateway", gateway}};
    if (!network->range.empty()) pool.emplace_back("IPRange", network->range);
    config.emplace_back(std::move(pool));
  }
  return json::dump(json::Object{
      {"Name", network->name},
      {"Id", network->id},
      {"Created", format_time(network->created_ns / 1'000'000'000)},
      {"Scope", "local"},
      {"Driver", network->driver},
      {"EnableIPv6", false},
      {"IPAM", json::Object{{"Driver", "default"},
                            {"Options", is_usual(*network) ? json::Value() : json::Object{}},
                            {"Config", std::move(config)}}},
      {"Internal", network->internal},
      {"Attachable", false},
      {"Ingress", false},
      {"ConfigFrom", json::Object{{"Network", ""}}},
      {"ConfigOnly", false},
      {"Containers", std::move(containers)},
      {"Options", json::Object{}},
      {"Labels", text_map(network->labels)},
  });
}

}  // namespace berth::engine
