// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network_store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/context/document_values.hpp"
#include "engine/context/time.hpp"
#include "engine/network/leases.hpp"
#include "engine/request/text.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "network/address.hpp"
#include "network/rules.hpp"
#include "sys/file/file.hpp"
#include "sys/net/link.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kRecordSuffix = ".json";
constexpr size_t kMaxNetwork = size_t{1} << 20;
constexpr size_t kMaxNetworkName = 200;

std::string networks_directory(const Context& context) {
  return context.paths.root + "/networks";
}

bool is_network_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNetworkName && name[0] != '_' && name[0] != '.' &&
         name[0] != '-' && std::ranges::all_of(name, is_name_character);
}

Result<sys::Fd> lock_networks(const Context& context) {
  std::string path = networks_directory(context);
  TRY(sys::make_directories(sys::cwd(), path, 0700));
  sys::Fd lock = TRY(sys::open_at(sys::cwd(), path + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, path + "/lock"));
  return lock;
}

Error overlaps(const network::Subnet& wanted, const std::string& whose) {
  return make_error(
      Kind::usage,
      "Pool overlaps with other one on this address space: " + wanted.text() + " with " + whose,
      "another --subnet, or none for one that is free");
}

/// Subnets that already have a route on this machine or in a user's networks.
struct Ways {
  std::vector<network::Subnet> routes;
  std::optional<network::Subnet> outside;  ///< of the link to the host, if a holder runs
};
Result<Ways> look_at_ways(const Context& context) {
  Ways ways;
  auto links = TRY(sys::NetLinks::open());
  for (const sys::Route& route : TRY(links.routes())) {
    auto base = network::from_bytes(route.destination);
    if (base && route.prefix_length != 0) ways.routes.push_back({*base, route.prefix_length});
  }
  auto holder = TRY(find_holder(context));
  if (holder) ways.outside = network::parse_subnet(holder->subnet);
  return ways;
}

Result<network::Subnet> choose_subnet(const Context& context, const NetworkRecord& wish,
                                      const std::vector<NetworkRecord>& others) {
  const Ways ways = TRY(look_at_ways(context));
  std::vector<network::Subnet> taken;
  for (const NetworkRecord& one : others) {
    if (auto subnet = network::parse_subnet(one.subnet)) taken.push_back(*subnet);
  }
  if (wish.subnet.empty()) {
    taken.insert(taken.end(), ways.routes.begin(), ways.routes.end());
    if (ways.outside) taken.push_back(*ways.outside);
    auto chosen = network::choose_named_subnet(taken);
    if (chosen) return *chosen;
    return make_error(Kind::unsupported,
                      "could not find an available, non-overlapping IPv4 address pool",
                      "--subnet 10.1.2.0/24");
  }
  auto subnet = network::parse_subnet(wish.subnet);
  if (!subnet || subnet->prefix_length < 8 || subnet->prefix_length > 30) {
    return make_error(Kind::usage,
                      "invalid subnet " + quote(wish.subnet) + ": expected ADDRESS/8 to ADDRESS/30",
                      "--subnet 10.1.2.0/24");
  }
  for (const NetworkRecord& one : others) {
    auto other = network::parse_subnet(one.subnet);
    if (other && other->overlaps(*subnet)) {
      return overlaps(*subnet, one.subnet + " of network " + one.name);
    }
  }
  for (const network::Subnet& route : ways.routes) {
    if (route.overlaps(*subnet)) return overlaps(*subnet, "a route of this host, " + route.text());
  }
  if (ways.outside && ways.outside->overlaps(*subnet)) {
    return overlaps(*subnet,
                    ways.outside->text() + ", the way out of your networks while one runs");
  }
  return *subnet;
}

Result<network::Subnet> check_range(const std::string& wish, const network::Subnet& subnet) {
  auto range = network::parse_subnet(wish);
  bool is_inside =
      range && range->prefix_length >= subnet.prefix_length && subnet.contains(range->base);
  if (is_inside) return *range;
  return make_error(Kind::usage, "no matching subnet for range " + quote(wish),
                    "a part of " + subnet.text());
}

Result<void> choose_addresses(const Context& context, NetworkRecord& wish,
                              const std::vector<NetworkRecord>& others) {
  if (wish.subnet.empty() && (!wish.gateway.empty() || !wish.range.empty())) {
    return make_error(Kind::usage, "every ip-range or gateway must have a corresponding subnet",
                      "--subnet");
  }
  network::Subnet subnet = TRY(choose_subnet(context, wish, others));
  wish.subnet = subnet.text();
  if (!wish.range.empty()) wish.range = TRY(check_range(wish.range, subnet)).text();
  if (wish.gateway.empty()) wish.gateway = network::text_of(subnet.base + 1);
  auto gateway = network::parse_ipv4(wish.gateway);
  bool is_inside =
      gateway && subnet.contains(*gateway) && *gateway != subnet.base && *gateway != subnet.last();
  if (is_inside) return {};
  return make_error(Kind::usage, "no matching subnet for gateway " + quote(wish.gateway));
}

/// A new id that differs from the others in the first digits, which interface names contain.
std::string make_network_id(const std::vector<NetworkRecord>& others) {
  while (true) {
    std::string id = sys::random_hex(32);
    auto begins_so = [&](const NetworkRecord& one) {
      return one.id.compare(0, network::kNetworkDigits, id, 0, network::kNetworkDigits) == 0;
    };
    if (std::ranges::none_of(others, begins_so)) return id;
  }
}

Result<std::optional<NetworkRecord>> read_network_record(const Context& context,
                                                         const std::string& name) {
  std::string path = networks_directory(context) + "/" + name + std::string(kRecordSuffix);
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxNetwork));
  if (!text) return std::optional<NetworkRecord>();
  auto record = TRY(json::read<NetworkRecord>(*text, "network " + quote(name)));
  return std::optional<NetworkRecord>(std::move(record));
}

struct Records {
  std::vector<NetworkRecord> good;
  std::vector<Error> damage;  ///< errors of unreadable records
};
Result<Records> read_records(const Context& context) {
  Records records;
  auto directory =
      TRY(sys::open_if_exists(sys::cwd(), networks_directory(context), O_RDONLY | O_DIRECTORY));
  if (!directory) return records;
  for (const std::string& file : TRY(sys::list_directory(*directory, "."))) {
    if (!file.ends_with(kRecordSuffix)) continue;
    auto record = read_network_record(context, file.substr(0, file.size() - kRecordSuffix.size()));
    // A record that is removed meanwhile is skipped.
    if (!record.ok()) {
      records.damage.push_back(std::move(record).error());
    } else if (*record) {
      records.good.push_back(std::move(**record));
    }
  }
  return records;
}

bool is_usual(const NetworkRecord& network) {
  return network.created_ns == 0;
}

/// The endpoint of a container in the network; nothing if the container is not connected.
std::optional<network::Endpoint> endpoint_in(const NetworkRecord& network,
                                             const network::Lease& lease) {
  bool is_bridge = is_usual(network) && network.name == kDefaultNetwork;
  for (const network::Endpoint& one : lease.endpoints) {
    if (is_bridge ? one.network.empty() : one.network == network.id) return one;
  }
  return std::nullopt;
}

/// bridge, host and none. Pure.
const std::vector<NetworkRecord>& usual_networks() {
  static const std::vector<NetworkRecord> usual = [] {
    std::vector<NetworkRecord> made(3);
    const char* const words[] = {"bridge", "host", "none"};
    const char* const drivers[] = {"bridge", "host", "null"};
    // Fixed ids, since these networks are never created.
    const char* const ids[] = {"b1d6eb0a5c71", "0057b0a5c710", "404eb0a5c710"};
    for (size_t i = 0; i < made.size(); ++i) {
      made[i].name = words[i];
      made[i].driver = drivers[i];
      made[i].id = ids[i] + std::string(52, '0');
    }
    return made;
  }();
  return usual;
}

}  // namespace

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool is_network_keyword(std::string_view name) {
  return parse_network(name).ok() || name == "container";
}

Error no_network(std::string_view reference) {
  const std::string name = escape_controls(reference.substr(0, 255));
  return make_error(
      Kind::not_found, "network " + name + " not found",
      is_network_name(reference) ? "berth network create " + name : "berth network ls");
}

Result<NetworkRecord> make_network(const Context& context, NetworkRecord wish) {
  if (!is_network_name(wish.name)) {
    return make_error(Kind::usage, "invalid network name " + quote(wish.name.substr(0, 255)) +
                                       ": only [a-zA-Z0-9][a-zA-Z0-9_.-]* is allowed");
  }
  if (wish.driver != "bridge") {
    return make_error(Kind::unsupported,
                      "network driver " + quote(wish.driver) + ": the only driver is bridge",
                      "--driver bridge, or berth run --network host");
  }
  if (is_network_keyword(wish.name)) {
    return make_error(Kind::denied,
                      "operation is not permitted on predefined " + wish.name + " network",
                      "another name");
  }
  sys::Fd lock = TRY(lock_networks(context));
  Records records = TRY(read_records(context));
  const std::vector<NetworkRecord>& others = records.good;
  if (wish.subnet.empty() && !records.damage.empty()) {
    return std::move(records.damage.front())
        .with_context("cannot choose a subnet: that of another network is not known")
        .with_hint("--subnet 10.1.2.0/24, or remove that file of " + networks_directory(context));
  }
  for (const NetworkRecord& one : others) {
    if (one.name != wish.name) continue;
    return make_error(Kind::exists, "network with name " + wish.name + " already exists");
  }
  TRY(choose_addresses(context, wish, others));
  wish.id = make_network_id(others);
  wish.created_ns =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  sys::Fd directory =
      TRY(sys::open_at(sys::cwd(), networks_directory(context), O_RDONLY | O_DIRECTORY));
  TRY(sys::replace_file(directory, wish.name + std::string(kRecordSuffix), json::write(wish), 0600,
                        sys::Sync::yes));
  emit_event(context.paths,
             {"network", "create", wish.id, {{"name", wish.name}, {"type", "bridge"}}});
  return wish;
}

Result<std::vector<NetworkRecord>> list_networks(const Context& context) {
  Records records = TRY(read_records(context));
  for (const Error& error : records.damage) {
    context.log.warn("cannot read a network: " + to_line(error) + ", ignoring");
  }
  return std::move(records.good);
}

Result<std::optional<NetworkRecord>> find_network(const Context& context,
                                                  std::string_view reference) {
  if (is_network_name(reference)) {
    auto named = TRY(read_network_record(context, std::string(reference)));
    if (named) return named;
  }
  auto all = TRY(read_records(context)).good;
  all.insert(all.end(), usual_networks().begin(), usual_networks().end());
  std::optional<NetworkRecord> found;
  for (NetworkRecord& one : all) {
    if (one.name == reference) return std::optional<NetworkRecord>(std::move(one));
  }
  for (NetworkRecord& one : all) {
    if (reference.empty() || !one.id.starts_with(reference)) continue;
    if (found) {
      return make_error(
          Kind::usage,
          "network " + escape_controls(reference) + " is ambiguous: several ids start with it",
          "berth network ls --no-trunc");
    }
    found = std::move(one);
  }
  return found;
}

Result<NetworkRecord> remove_network(const Context& context, std::string_view reference) {
  // Lock first, since another process may make a network of this name meanwhile.
  sys::Fd lock = TRY(lock_networks(context));
  auto found = TRY(find_network(context, reference));
  if (!found) {
    return make_error(Kind::not_found,
                      "No such network: " + escape_controls(reference.substr(0, 255)),
                      "berth network ls");
  }
  if (found->created_ns == 0) {
    return make_error(Kind::denied,
                      found->name + " is a pre-defined network and cannot be removed");
  }
  for (const auto& [container, lease] : list_leases(context)) {
    for (const network::Endpoint& one : lease.endpoints) {
      if (one.network != found->id) continue;
      return make_error(Kind::busy,
                        "error while removing network: network " + found->name + " id " +
                            found->id + " has active endpoints",
                        "berth stop " + container.substr(0, 12));
    }
  }
  sys::Fd directory =
      TRY(sys::open_at(sys::cwd(), networks_directory(context), O_RDONLY | O_DIRECTORY));
  TRY(sys::remove_entry(directory, found->name + std::string(kRecordSuffix)));
  emit_event(context.paths,
             {"network", "destroy", found->id, {{"name", found->name}, {"type", "bridge"}}});
  return std::move(*found);
}

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
  std::ranges::sort(found, {}, &NetworkRecord::name);
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
