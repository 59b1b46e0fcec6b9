// SPDX-License-Identifier: Apache-2.0
#include "network/attach/bridge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "network/address.hpp"
#include "network/attach/choose_ports.hpp"
#include "network/attach/endpoints.hpp"
#include "network/attach/nameservers.hpp"
#include "network/attach/nftables.hpp"
#include "network/attach/peers.hpp"
#include "network/attach/switches.hpp"
#include "network/name_files.hpp"
#include "network/rules.hpp"
#include "sys/file/file.hpp"
#include "sys/net/link.hpp"

namespace berth::network {
namespace {

constexpr const char* kForwardingFile = "forwarding";  // interfaces that forward because of us
constexpr const char* kNamedFile = "bridges";  // ids of the named networks that have a bridge
constexpr const char* kItsSpace = "the container's network namespace";
constexpr const char* kNoBridge = "--network none or host, or run berth as an ordinary user";

struct Bridge {
  uint32_t index = 0;
  Subnet subnet;
  Ipv4 gateway = 0;
};

std::vector<std::string> words_of_file(const Leases& leases, const char* file) {
  std::vector<std::string> words;
  auto text = sys::read_file_if_exists(leases.fd(), file, 65536);
  if (!text.ok() || !*text) return words;
  for (std::string_view word : split_blank(**text)) words.emplace_back(word);
  return words;
}

std::vector<std::string> forwarded_by_us(const Leases& leases) {
  return words_of_file(leases, kForwardingFile);
}

/// Enables forwarding on the interfaces of the host's routes, on which answers arrive, and on no
/// others. On an interface that did not forward before, the rules let nothing else through.
Result<void> switch_forwarding_on(const Leases& leases, sys::NetLinks& links,
                                  const Bridge& bridge) {
  std::set<uint32_t> used;
  for (const sys::Route& route : TRY(links.routes())) used.insert(route.index);
  std::vector<std::string> ours = forwarded_by_us(leases);
  for (const sys::LinkName& link : TRY(links.links())) {
    if (!used.contains(link.index) || link.index == bridge.index) continue;
    std::string path = switch_path("ipv4", link.name, "forwarding");
    if (link.name == "lo" || !is_off(path)) continue;
    // Listed before forwarding is enabled, so that it is disabled again whatever happens.
    if (std::ranges::find(ours, link.name) == ours.end()) ours.push_back(link.name);
    TRY(sys::replace_file(leases.fd(), kForwardingFile, join(ours, "\n"), 0600));
    TRY(set_switch(path, "1"));
  }
  return {};
}

void switch_forwarding_off(const Leases& leases) {
  for (const std::string& name : forwarded_by_us(leases)) {
    ignore(set_switch(switch_path("ipv4", name, "forwarding"), "0"));  // the interface may be gone
  }
  ignore(sys::remove_entry(leases.fd(), kForwardingFile));
}

// ---- the bridge ---------------------------------------------------------------------------------

std::vector<Subnet> taken_subnets(const std::vector<sys::Route>& routes, uint32_t but_of) {
  std::vector<Subnet> taken;
  for (const sys::Route& route : routes) {
    auto base = from_bytes(route.destination);
    if (base && route.index != but_of) taken.push_back({*base, route.prefix_length});
  }
  return taken;
}

/// The present bridge. Removes a bridge without an address or with another address than `wanted`:
/// the process that made it was killed, or another network had the same bridge name.
Result<std::optional<Bridge>> find_bridge(sys::NetLinks& links, const InterfaceNames& names,
                                          std::optional<Ipv4> wanted) {
  auto index = TRY(links.find(names.bridge));
  if (!index) return std::optional<Bridge>();
  for (const sys::LinkAddress& address : TRY(links.addresses(*index))) {
    auto gateway = from_bytes(address.local);
    if (address.family != AF_INET || !gateway || address.prefix_length > 30) continue;
    Subnet subnet{0, address.prefix_length};
    subnet.base = *gateway & subnet.mask();
    if (*gateway == wanted.value_or(subnet.base + 1)) {
      return std::optional(Bridge{*index, subnet, *gateway});
    }
  }
  TRY(links.remove(*index));
  return std::optional<Bridge>();
}

/// The subnet and gateway of a new unnamed bridge: a free subnet, and its first address.
Result<Bridge> choose_place(sys::NetLinks& links, const InterfaceNames& names) {
  uint32_t turn = 0;
  for (unsigned char c : names.bridge.substr(6)) turn = turn * 31 + c;  // "berth0": no turn
  auto subnet = choose_subnet(taken_subnets(TRY(links.routes()), 0), turn);
  if (subnet) return Bridge{0, *subnet, subnet->base + 1};
  return make_error(Kind::unsupported, "find a private subnet that overlaps no route of this host",
                    kNoBridge);
}

/// The subnet and gateway of a named network, unless the host now has a route that overlaps the
/// subnet.
Result<Bridge> place_of(sys::NetLinks& links, const Attachment& wanted) {
  auto subnet = parse_subnet(wanted.subnet);
  auto gateway = parse_ipv4(wanted.gateway);
  if (!subnet || !gateway || !is_id(wanted.network)) {
    return make_error(Kind::usage, "network " + quote(wanted.name) + ": no subnet, gateway or id");
  }
  for (const Subnet& taken : taken_subnets(TRY(links.routes()), 0)) {
    if (taken.prefix_length == 0 || !taken.overlaps(*subnet)) continue;
    return make_error(Kind::busy,
                      "network " + quote(wanted.name) + ": this host has a route to " +
                          taken.text() + ", which overlaps " + subnet->text(),
                      "berth network rm " + wanted.name + ", and create it again");
  }
  return Bridge{0, *subnet, *gateway};
}

/// Makes `bridge`, which has no index yet, and sets its index.
Result<void> make_bridge(sys::NetLinks& links, const InterfaceNames& names, Bridge& bridge) {
  TRY(links.make_bridge(names.bridge, mac_of(bridge.gateway)));
  auto index = TRY(links.find(names.bridge));
  if (!index) return make_error(Kind::interrupted, "make bridge " + quote(names.bridge));
  bridge.index = *index;
  // Done before the bridge has an address through which packets come in. The host must ignore
  // router advertisements of containers.
  ignore(set_switch(switch_path("ipv6", names.bridge, "disable_ipv6"), "1"));  // no IPv6: no error
  TRY(set_switch(switch_path("ipv4", names.bridge, "forwarding"), "1"));
  TRY(links.raise(bridge.index));
  sys::LinkAddress address;
  address.family = AF_INET;
  address.prefix_length = bridge.subnet.prefix_length;
  address.local = bytes_of(bridge.gateway);
  address.broadcast = bytes_of(bridge.subnet.last());
  return links.add(bridge.index, address);
}

Result<Bridge> provide_bridge(const Leases& leases, sys::NetLinks& links,
                              const InterfaceNames& names, const Attachment& wanted) {
  bool is_named = !wanted.network.empty();
  auto found = TRY(find_bridge(links, names, is_named ? parse_ipv4(wanted.gateway) : std::nullopt));
  Bridge bridge;
  if (found) {
    bridge = *found;
  } else if (is_named) {
    bridge = TRY(place_of(links, wanted));
    // Listed before the bridge is made, so that it is removed whatever happens.
    auto listed = words_of_file(leases, kNamedFile);
    if (std::ranges::find(listed, wanted.network) == listed.end()) {
      listed.push_back(wanted.network);
    }
    TRY(sys::replace_file(leases.fd(), kNamedFile, join(listed, "\n"), 0600));
    TRY(make_bridge(links, names, bridge));
  } else {
    bridge = TRY(choose_place(links, names));
    TRY(make_bridge(links, names, bridge));
  }
  TRY(switch_forwarding_on(leases, links, bridge));
  return bridge;
}

Result<Bridge> open_bridge(const Leases& leases, sys::NetLinks& links, const InterfaceNames& names,
                           const Attachment& wanted) {
  auto bridge = provide_bridge(leases, links, names, wanted);
  if (bridge.ok()) return bridge;
  Error error = std::move(bridge).error().with_context("cannot make bridge " + quote(names.bridge));
  if (error.hint.empty()) error.hint = kNoBridge;
  return error;
}

// ---- chains of other programs
// ---------------------------------------------------------------------------

/// Chains that see forwarded packets, with their rules; `dropping`: only those that drop by policy.
Result<std::vector<ForwardChain>> list_others(const std::string& bridge, bool dropping) {
  std::string listing;
  for (const ForwardChain& chain : forward_chains(TRY(list_chains()), bridge)) {
    if (dropping && !chain.drops) continue;
    listing += TRY(list_chain(chain.name));
  }
  return forward_chains(listing, bridge);
}

/// Adds accepting rules to the chains of other programs: Docker and ufw drop forwarded packets
/// unless a rule accepts them.
Result<void> pass_others(const std::string& bridge) {
  std::string rules = let_pass(TRY(list_others(bridge, true)), bridge);
  return rules.empty() ? Result<void>() : apply_rules(rules);
}

/// Removes the rules of pass_others(). One that cannot be removed is harmless: it names a bridge
/// that no longer exists.
void leave_others(const std::string& bridge) {
  auto chains = list_others(bridge, false);
  if (!chains.ok()) return;
  std::string rules = stop_passing(*chains);
  if (!rules.empty()) ignore(apply_rules(rules));
}

// ---- rules --------------------------------------------------------------------------------------

/// The bridge may carry addresses of this host's loopback only while a port is published there: the
/// rules keep containers from sending to them, but a reload of the firewall removes our rules
/// (CVE-2020-8558).
Result<void> switch_loopback(const InterfaceNames& names, const std::vector<Lease>& current) {
  bool wanted = std::ranges::any_of(current, [](const Lease& lease) {
    return std::ranges::any_of(lease.ports, [](const Published& port) {
      auto address = parse_ipv4(port.host_address);
      return !address || *address == 0 || *address >> 24 == 127;
    });
  });
  return set_switch(switch_path("ipv4", names.bridge, "route_localnet"), wanted ? "1" : "0");
}

/// Replaces all tables at once, because each accepts packets for the bridges of the others.
Result<void> set_packet_rules(const Leases& leases, const std::vector<Used>& networks) {
  std::string rules, bridge_rules;
  std::vector<std::string> forwarded = forwarded_by_us(leases);
  for (const Used& one : networks) {
    RuleInputs inputs{one.names, one.subnet, one.leases, forwarded, one.internal};
    rules += TRY(make_rules(inputs));
    bridge_rules += TRY(make_bridge_rules(inputs));
  }
  // Both together, because the kernel makes us wait for each replacement.
  auto both = apply_rules(rules + bridge_rules);
  if (both.ok() || both.error().kind == Kind::denied) return both;
  // A kernel without bridge filters: the containers trust one another, as in docker.
  return apply_rules(rules);
}

Result<void> set_rules(const Leases& leases, const std::vector<Used>& networks) {
  TRY(set_packet_rules(leases, networks));
  // Done only after the rules are active.
  for (const Used& one : networks) TRY(switch_loopback(one.names, one.leases));
  return {};
}

Result<void> remove_link(sys::NetLinks& links, const std::string& name) {
  auto index = TRY(links.find(name));
  return index ? links.remove(*index) : Result<void>();
}

/// Removes interfaces of containers that ended without a call of ours. Interfaces disappear with
/// their namespace, unless a process holds it open.
Result<void> remove_strays(sys::NetLinks& links, const InterfaceNames& names,
                           const std::vector<Lease>& current) {
  for (const sys::LinkName& link : TRY(links.links())) {
    if (!link.name.starts_with(names.port_prefix)) continue;
    bool is_used = std::ranges::any_of(
        current, [&](const Lease& lease) { return lease.interface == link.name; });
    if (!is_used) TRY(links.remove(link.index));
  }
  return {};
}

Result<void> remove_network(sys::NetLinks& links, const InterfaceNames& names) {
  TRY(remove_strays(links, names, {}));
  TRY(remove_link(links, names.bridge));
  auto both = apply_rules(drop_rules(names) + drop_bridge_rules(names));
  if (!both.ok()) TRY(apply_rules(drop_rules(names)));  // a kernel without filters for bridges
  leave_others(names.bridge);
  return {};
}

/// Removes bridges of networks without containers.
Result<void> remove_unused(const Leases& leases, sys::NetLinks& links,
                           const std::vector<Used>& networks) {
  auto is_used = [&](const InterfaceNames& names) {
    return std::ranges::any_of(networks,
                               [&](const Used& one) { return one.names.bridge == names.bridge; });
  };
  InterfaceNames unnamed = names_for(leases.path());
  bool is_there = networks.empty() || TRY(links.find(unnamed.bridge)).has_value();
  if (is_there && !is_used(unnamed)) TRY(remove_network(links, unnamed));
  std::vector<std::string> listed = words_of_file(leases, kNamedFile), left;
  for (const std::string& id : listed) {
    if (!is_id(id)) continue;
    if (is_used(names_for_network(id))) {
      left.push_back(id);
    } else {
      TRY(remove_network(links, names_for_network(id)));
    }
  }
  if (left.empty()) return sys::remove_entry(leases.fd(), kNamedFile);
  if (left == listed) return {};
  return sys::replace_file(leases.fd(), kNamedFile, join(left, "\n"), 0600);
}

// ---- a container --------------------------------------------------------------------------------

Result<void> plug_in(sys::NetLinks& links, const sys::Fd& space, const Bridge& bridge,
                     const Endpoint& endpoint) {
  auto address = parse_ipv4(endpoint.address);
  if (!address) return make_error(Kind::bug, "plug in " + quote(endpoint.address));
  TRY(remove_link(links, endpoint.interface));
  std::string mac = TRY(parse_mac(endpoint.mac));
  TRY(links.make_pair(endpoint.interface, space, endpoint.inside, mac));
  auto outside = TRY(links.find(endpoint.interface));
  if (!outside) return make_error(Kind::interrupted, "find " + quote(endpoint.interface));
  ignore(set_switch(switch_path("ipv6", endpoint.interface, "disable_ipv6"), "1"));
  TRY(links.join_bridge(*outside, bridge.index));
  TRY(links.raise(*outside));

  auto inside = TRY(sys::NetLinks::open_in(space, kItsSpace));
  auto index = TRY(inside.find(endpoint.inside));
  if (!index) return make_error(Kind::interrupted, "find " + quote(endpoint.inside));
  // Done before the interface is up: otherwise it gets a link-local address, through which
  // containers could reach each other past all filters.
  const std::string no_ipv6 = switch_path("ipv6", endpoint.inside, "disable_ipv6");
  auto file = sys::open_in_net_space(space, kItsSpace, no_ipv6, O_WRONLY);
  if (file.ok()) ignore(sys::write_all(*file, "1", no_ipv6));  // no error if this kernel lacks IPv6
  sys::LinkAddress given;
  given.family = AF_INET;
  given.prefix_length = bridge.subnet.prefix_length;
  given.local = bytes_of(*address);
  given.broadcast = bytes_of(bridge.subnet.last());
  TRY(inside.add(*index, given));
  return inside.raise(*index);
}

/// Adds the default route, through the endpoint with a way out, if there is one.
Result<void> add_way_out(const sys::Fd& space, const std::vector<Endpoint>& endpoints) {
  const Endpoint* out = way_out(endpoints);
  if (out == nullptr) return {};
  auto inside = TRY(sys::NetLinks::open_in(space, kItsSpace));
  auto index = TRY(inside.find(out->inside));
  auto gateway = parse_ipv4(out->gateway);
  if (!index || !gateway) return make_error(Kind::interrupted, "find " + quote(out->inside));
  return inside.add_default_route(*index, bytes_of(*gateway));
}

/// Restores all interfaces and routes of a container after its bridges were lost.
Result<void> plug_in_again(sys::NetLinks& links, const sys::Fd& space,
                           const std::map<std::string, Bridge>& bridges, const Lease& lease) {
  auto inside = TRY(sys::NetLinks::open_in(space, kItsSpace));
  for (const Endpoint& one : lease.endpoints) {
    TRY(remove_link(inside, one.inside));  // the old one is removed asynchronously
    TRY(plug_in(links, space, bridges.at(one.network), one));
  }
  return add_way_out(space, lease.endpoints);
}

Result<Ipv4> take_address(const std::vector<Lease>& current, const Attachment& wanted,
                          const Bridge& bridge) {
  std::vector<Ipv4> taken = {bridge.gateway};
  for (const Lease& lease : current) {
    for (const Endpoint& one : endpoints_of(lease)) {
      auto address = parse_ipv4(one.address);
      if (address && one.network == wanted.network) taken.push_back(*address);
    }
  }
  const std::string subnet = bridge.subnet.text();
  if (wanted.address.empty()) {
    Subnet range = parse_subnet(wanted.range).value_or(bridge.subnet);
    auto address = choose_address(bridge.subnet, range, taken);
    if (address) return *address;
    return make_error(Kind::busy, "find an address in " + range.text() + ": all are taken");
  }
  auto address = parse_ipv4(wanted.address);
  bool is_inside = address && bridge.subnet.contains(*address) && *address != bridge.subnet.base &&
                   *address != bridge.subnet.last();
  if (!is_inside) {
    return make_error(Kind::usage, "address " + quote(wanted.address) + ": network " +
                                       quote(wanted.name) + " has " + subnet);
  }
  if (std::ranges::find(taken, *address) == taken.end()) return *address;
  return make_error(
      Kind::busy,
      "address " + quote(wanted.address) + " of network " + quote(wanted.name) + " is taken",
      "another --ip, or none for any that is free");
}

std::string free_name(const std::vector<Endpoint>& endpoints) {
  for (size_t number = 0;; ++number) {
    std::string name = "eth" + std::to_string(number);
    if (std::ranges::none_of(endpoints, [&](const Endpoint& one) { return one.inside == name; })) {
      return name;
    }
  }
}

/// Adds to `lease` an endpoint of one network, with an address that no lease of `current` has.
/// Returns the bridge.
Result<Bridge> join_network(const Leases& leases, sys::NetLinks& links,
                            const std::vector<Lease>& current, const Attachment& wanted,
                            Lease& lease) {
  InterfaceNames names = names_of(leases.path(), wanted.network);
  auto opened = open_bridge(leases, links, names, wanted);
  if (!opened.ok() && !lease.outside.empty() && opened.error().hint == kNoBridge) {
    return std::move(opened).error().with_hint("--network none or host");
  }
  Bridge bridge = TRY(std::move(opened));
  Ipv4 address = TRY(take_address(current, wanted, bridge));
  Endpoint made;
  made.network = wanted.network;
  made.name = wanted.name;
  made.subnet = bridge.subnet.text();
  made.gateway = text_of(bridge.gateway);
  made.internal = wanted.internal;
  made.address = text_of(address);
  made.mac = wanted.mac.empty() ? mac_text(mac_of(address)) : wanted.mac;
  Ipv4 offset = address - bridge.subnet.base;
  made.interface = names.port_prefix +
                   (wanted.network.empty() ? std::to_string(offset) : fmt::format("{:x}", offset));
  made.inside = free_name(lease.endpoints);
  made.names = wanted.names;
  lease.endpoints.push_back(std::move(made));
  return bridge;
}

/// Makes the chains of the host's firewall accept a network's packets.
Result<void> pass_all(const std::vector<Used>& networks) {
  for (const Used& one : networks) {
    if (!one.internal)
      TRY_CTX(pass_others(one.names.bridge), "cannot allow the networks in the host's firewall");
  }
  return {};
}

/// Adjusts bridge, interfaces and rules to the leases in `current`; without leases it removes all
/// of it. Errors: io, denied.
Result<void> tidy_bridge(Leases& leases, const std::vector<Lease>& current) {
  auto links = TRY(sys::NetLinks::open());
  std::vector<Used> networks = networks_in_use(leases.path(), current);
  TRY(remove_unused(leases, links, networks));
  if (networks.empty()) {
    switch_forwarding_off(leases);
    return {};
  }
  for (Used& one : networks) TRY(remove_strays(links, one.names, one.leases));
  // A missing bridge is made again when the next container is attached.
  std::vector<Used> there;
  for (Used& one : networks) {
    if (TRY(links.find(one.names.bridge))) there.push_back(std::move(one));
  }
  return there.empty() ? Result<void>() : set_rules(leases, there);
}

}  // namespace

Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease) {
  std::vector<Lease> current = TRY(leases.sweep());
  Rollback undo;
  undo.add([&] { ignore(tidy_bridge(leases, current)); });
  auto links = TRY(sys::NetLinks::open());
  std::vector<Attachment> wanted = request.networks;
  if (wanted.empty()) wanted.emplace_back().mac = request.mac;
  std::vector<Bridge> bridges;
  for (const Attachment& one : wanted) {
    bridges.push_back(TRY(join_network(leases, links, current, one, lease)));
  }
  // In a holder's namespace both are decided before we enter it.
  if (lease.outside.empty()) {
    lease.nameservers = TRY(nameservers_of_bridge());
    if (way_out(lease.endpoints) != nullptr) {
      lease.ports = TRY(choose_ports(request.ports, current));
    }
  }
  show_endpoint(lease);
  // The lease is written first, so that the next process can find what belongs to it.
  TRY(leases.write(lease));
  undo.add([&] { ignore(leases.remove(lease.id)); });
  std::vector<Lease> all = current;
  all.push_back(lease);
  std::vector<Used> networks = networks_in_use(leases.path(), all);
  TRY(set_rules(leases, networks));
  TRY(pass_all(networks));
  for (size_t i = 0; i < bridges.size(); ++i) {
    TRY_CTX(plug_in(links, space, bridges[i], lease.endpoints[i]),
            "cannot give the container a network interface");
  }
  TRY_CTX(add_way_out(space, lease.endpoints), "cannot give the container a route to the outside");
  undo.commit();
  return {};
}

Result<void> detach_bridge(Leases& leases, const Lease& lease) {
  auto links = TRY(sys::NetLinks::open());
  for (const Endpoint& one : endpoints_of(lease)) TRY(remove_link(links, one.interface));
  TRY(leases.remove(lease.id));
  std::vector<Lease> left = TRY(leases.sweep());
  TRY(tidy_bridge(leases, left));
  send_to_peers(left, networks_of(lease));
  return {};
}

Result<void> connect_bridge(Leases& leases, const Attachment& wanted, std::vector<Published> ports,
                            const sys::Fd& space, Lease& lease) {
  lease.endpoints = endpoints_of(lease);
  bool had_way_out = way_out(lease.endpoints) != nullptr;
  std::vector<Lease> current = TRY(leases.sweep());
  const Lease before = lease;
  Rollback undo;
  undo.add([&] {
    ignore(leases.write(before));
    ignore(tidy_bridge(leases, current));
  });
  auto links = TRY(sys::NetLinks::open());
  Bridge bridge = TRY(join_network(leases, links, current, wanted, lease));
  if (!ports.empty()) lease.ports = std::move(ports);
  show_endpoint(lease);
  TRY(leases.write(lease));
  std::vector<Lease> all = TRY(leases.sweep());
  std::vector<Used> networks = networks_in_use(leases.path(), all);
  TRY(set_rules(leases, networks));
  TRY(pass_all(networks));
  TRY_CTX(plug_in(links, space, bridge, lease.endpoints.back()),
          "cannot give the container a network interface");
  if (!had_way_out) TRY(add_way_out(space, lease.endpoints));
  undo.commit();
  send_to_peers(all, networks_of(lease));
  return {};
}

Result<void> restore_bridges(Leases& leases, const std::vector<Placed>& containers) {
  auto links = TRY(sys::NetLinks::open());
  std::vector<Lease> current;
  std::map<std::string, Bridge> bridges;
  for (const Placed& one : containers) {
    current.push_back(one.lease);
    for (const Endpoint& there : one.lease.endpoints) {
      Attachment same;
      same.network = there.network;
      same.name = there.name;
      same.subnet = there.subnet;
      same.gateway = there.gateway;
      InterfaceNames names = names_of(leases.path(), there.network);
      bridges[there.network] = TRY(open_bridge(leases, links, names, same));
    }
  }
  TRY(set_rules(leases, networks_in_use(leases.path(), current)));
  Result<void> failed;
  for (const auto& [lease, space] : containers) {
    auto plugged = plug_in_again(links, space, bridges, lease);
    if (!plugged.ok() && lives(lease.holder)) failed = std::move(plugged);  // else it ended
  }
  return failed;
}

Result<void> disconnect_bridge(Leases& leases, const std::string& network, const sys::Fd& space,
                               Lease& lease) {
  lease.endpoints = endpoints_of(lease);
  auto one = std::ranges::find(lease.endpoints, network, &Endpoint::network);
  if (one == lease.endpoints.end()) return {};
  bool was_way_out = way_out(lease.endpoints) == &*one;
  auto links = TRY(sys::NetLinks::open());
  TRY(remove_link(links, one->interface));
  lease.endpoints.erase(one);
  if (way_out(lease.endpoints) == nullptr) lease.ports.clear();
  show_endpoint(lease);
  TRY(leases.write(lease));
  std::vector<Lease> all = TRY(leases.sweep());
  TRY(tidy_bridge(leases, all));
  // The default route has disappeared with the removed interface.
  if (was_way_out) TRY(add_way_out(space, lease.endpoints));
  std::set<std::string> told = networks_of(lease);
  told.insert(network);
  send_to_peers(all, told);
  if (networks_of(lease).empty()) forget_peers(lease.hosts_file);
  return {};
}

}  // namespace berth::network
