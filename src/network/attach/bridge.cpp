// SPDX-License-Identifier: Apache-2.0
#include "network/attach/bridge.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "network/attach/nftables.hpp"
#include "network/attach/ports.hpp"
#include "network/forward.hpp"
#include "network/ipv4.hpp"
#include "network/names.hpp"
#include "network/rules.hpp"
#include "sys/file.hpp"
#include "sys/net_link.hpp"

namespace berth::network {
namespace {

constexpr const char* kForwardingFile = "forwarding";  // interfaces that forward because of us
constexpr const char* kInside = "eth0";
constexpr const char* kNoBridge = "--network none or host, or run berth as an ordinary user";

struct Bridge {
  uint32_t index = 0;
  Subnet subnet;
  Ipv4 gateway() const { return subnet.base + 1; }
};

/// An address that is administered locally and says whose it is: 02:be and the four bytes of IPv4.
std::string mac_bytes(Ipv4 address) {
  return std::string("\x02\xbe", 2) + bytes_of(address);
}
std::string mac_text(Ipv4 address) {
  std::string digits = to_hex(mac_bytes(address));
  std::string text;
  for (size_t i = 0; i < digits.size(); i += 2) text += (i > 0 ? ":" : "") + digits.substr(i, 2);
  return text;
}

// ---- switches of the kernel ---------------------------------------------------------------------

std::string switch_path(const char* family, const std::string& interface, const char* name) {
  return std::string("/proc/sys/net/") + family + "/conf/" + interface + "/" + name;
}

Result<void> set_switch(const std::string& path, const std::string& value) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  return sys::write_all(file, value, path);
}

bool is_off(const std::string& path) {
  auto text = sys::read_file_if_exists(sys::cwd(), path, 64);
  return text.ok() && *text && trim(**text) == "0";
}

std::vector<std::string> forwarded_by_us(const Leases& leases) {
  std::vector<std::string> names;
  auto text = sys::read_file_if_exists(leases.fd(), kForwardingFile, 65536);
  if (!text.ok() || !*text) return names;
  for (std::string_view name : split_blank(**text)) names.emplace_back(name);
  return names;
}

/// Answers come in where the host's routes go out; those interfaces have to forward. Only they do,
/// and the rules let nothing else through those that did not before.
Result<void> switch_forwarding_on(const Leases& leases, sys::NetLinks& links,
                                  const Bridge& bridge) {
  std::set<uint32_t> used;
  for (const sys::Route& route : TRY(links.routes())) used.insert(route.index);
  std::vector<std::string> ours = forwarded_by_us(leases);
  for (const sys::LinkName& link : TRY(links.links())) {
    if (!used.contains(link.index) || link.index == bridge.index) continue;
    std::string path = switch_path("ipv4", link.name, "forwarding");
    if (link.name == "lo" || !is_off(path)) continue;
    // Listed before it is done, so that it is undone whatever happens.
    if (std::find(ours.begin(), ours.end(), link.name) == ours.end()) ours.push_back(link.name);
    TRY(sys::replace_file(leases.fd(), kForwardingFile, join(ours, "\n"), 0600));
    TRY(set_switch(path, "1"));
  }
  return {};
}

void switch_forwarding_off(const Leases& leases) {
  for (const std::string& name : forwarded_by_us(leases)) {
    ignore(set_switch(switch_path("ipv4", name, "forwarding"), "0"));  // it may have gone
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

Result<std::optional<Bridge>> find_bridge(sys::NetLinks& links, const Names& names) {
  auto index = TRY(links.find(names.bridge));
  if (!index) return std::optional<Bridge>();
  for (const sys::LinkAddress& address : TRY(links.addresses(*index))) {
    auto gateway = from_bytes(address.local);
    if (address.family != AF_INET || !gateway || address.prefix_length > 30) continue;
    Subnet subnet{0, address.prefix_length};
    subnet.base = *gateway & subnet.mask();
    if (*gateway == subnet.base + 1) return std::optional(Bridge{*index, subnet});
  }
  // Its maker was killed before it had an address.
  TRY(links.remove(*index));
  return std::optional<Bridge>();
}

Result<Bridge> make_bridge(sys::NetLinks& links, const Names& names) {
  uint32_t turn = 0;
  for (unsigned char c : names.bridge.substr(6)) turn = turn * 31 + c;  // "berth0": no turn
  auto subnet = choose_subnet(taken_subnets(TRY(links.routes()), 0), turn);
  if (!subnet) {
    return make_error(Kind::unsupported, "find a private subnet that no route of this host has",
                      kNoBridge);
  }
  Bridge bridge{0, *subnet};
  TRY(links.make_bridge(names.bridge, mac_bytes(bridge.gateway())));
  auto index = TRY(links.find(names.bridge));
  if (!index) return make_error(Kind::interrupted, "make bridge " + quote(names.bridge));
  bridge.index = *index;
  // Before an address lets anything in. Router advertisements of a container are no news to us.
  ignore(set_switch(switch_path("ipv6", names.bridge, "disable_ipv6"), "1"));  // no IPv6: fine
  TRY(set_switch(switch_path("ipv4", names.bridge, "forwarding"), "1"));
  TRY(links.raise(bridge.index));
  sys::LinkAddress address;
  address.family = AF_INET;
  address.prefix_length = subnet->prefix_length;
  address.local = bytes_of(bridge.gateway());
  address.broadcast = bytes_of(subnet->last());
  TRY(links.add(bridge.index, address));
  return bridge;
}

Result<Bridge> open_bridge(const Leases& leases, sys::NetLinks& links, const Names& names) {
  auto found = TRY(find_bridge(links, names));
  Bridge bridge;
  if (found) {
    bridge = *found;
  } else {
    bridge = TRY(make_bridge(links, names));
  }
  TRY(switch_forwarding_on(leases, links, bridge));
  return bridge;
}

// ---- chains of others ---------------------------------------------------------------------------

/// Those that are asked about forwarded packets, with their rules; `dropping`: only those by
/// policy.
Result<std::vector<ForwardChain>> list_others(const std::string& bridge, bool dropping) {
  std::string listing;
  for (const ForwardChain& chain : forward_chains(TRY(list_chains()), bridge)) {
    if (dropping && !chain.drops) continue;
    listing += TRY(list_chain(chain.name));
  }
  return forward_chains(listing, bridge);
}

/// Docker and ufw drop what is forwarded unless a rule accepts it.
Result<void> pass_others(const std::string& bridge) {
  std::string rules = let_pass(TRY(list_others(bridge, true)), bridge);
  return rules.empty() ? Result<void>() : apply_rules(rules);
}

/// What cannot be removed names a bridge that is gone, and decides nothing.
void leave_others(const std::string& bridge) {
  auto chains = list_others(bridge, false);
  if (!chains.ok()) return;
  std::string rules = stop_passing(*chains);
  if (!rules.empty()) ignore(apply_rules(rules));
}

// ---- rules --------------------------------------------------------------------------------------

/// The bridge may carry addresses of this host's loopback only while a port is published there: the
/// rules keep containers from sending to them, and rules are gone when a firewall is loaded anew
/// (CVE-2020-8558).
Result<void> switch_loopback(const Names& names, const std::vector<Lease>& current) {
  bool wanted = std::any_of(current.begin(), current.end(), [](const Lease& lease) {
    return std::any_of(lease.ports.begin(), lease.ports.end(), [](const Published& port) {
      auto address = parse_ipv4(port.host_address);
      return !address || *address == 0 || *address >> 24 == 127;
    });
  });
  return set_switch(switch_path("ipv4", names.bridge, "route_localnet"), wanted ? "1" : "0");
}

Result<void> set_packet_rules(const Leases& leases, const Names& names, const Subnet& subnet,
                              const std::vector<Lease>& current) {
  RuleInputs inputs{names, subnet, current, forwarded_by_us(leases)};
  std::string rules = TRY(make_rules(inputs));
  std::string bridge_rules = TRY(make_bridge_rules(inputs));
  // Together, because the kernel lets us wait once for each time that something is replaced.
  auto both = apply_rules(rules + bridge_rules);
  if (both.ok() || both.error().kind == Kind::denied) return both;
  // A kernel without filters for bridges: the containers trust one another, as with docker.
  return apply_rules(rules);
}

Result<void> set_rules(const Leases& leases, const Names& names, const Subnet& subnet,
                       const std::vector<Lease>& current) {
  TRY(set_packet_rules(leases, names, subnet, current));
  return switch_loopback(names, current);  // not before the rules hold
}

std::vector<Lease> bridged(const std::vector<Lease>& leases) {
  std::vector<Lease> found;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(found),
               [](const Lease& lease) { return lease.mode == kBridge; });
  return found;
}

Result<void> remove_link(sys::NetLinks& links, const std::string& name) {
  auto index = TRY(links.find(name));
  return index ? links.remove(*index) : Result<void>();
}

/// Interfaces of containers that ended without us go with their namespaces; not so where a process
/// holds one open.
Result<void> remove_strays(sys::NetLinks& links, const Names& names,
                           const std::vector<Lease>& current) {
  for (const sys::LinkName& link : TRY(links.links())) {
    if (!link.name.starts_with(names.port_prefix)) continue;
    bool is_used = std::any_of(current.begin(), current.end(),
                               [&](const Lease& lease) { return lease.interface == link.name; });
    if (!is_used) TRY(links.remove(link.index));
  }
  return {};
}

Result<void> remove_all(const Leases& leases, sys::NetLinks& links, const Names& names) {
  TRY(remove_strays(links, names, {}));
  TRY(remove_link(links, names.bridge));
  auto both = apply_rules(drop_rules(names) + drop_bridge_rules(names));
  if (!both.ok()) TRY(apply_rules(drop_rules(names)));  // a kernel without filters for bridges
  leave_others(names.bridge);
  switch_forwarding_off(leases);
  return {};
}

// ---- a container --------------------------------------------------------------------------------

Result<void> plug_in(sys::NetLinks& links, const sys::Fd& space, const Bridge& bridge,
                     const Lease& lease, Ipv4 address) {
  TRY(remove_link(links, lease.interface));
  TRY(links.make_pair(lease.interface, space, kInside, mac_bytes(address)));
  auto outside = TRY(links.find(lease.interface));
  if (!outside) return make_error(Kind::interrupted, "find " + quote(lease.interface));
  ignore(set_switch(switch_path("ipv6", lease.interface, "disable_ipv6"), "1"));
  TRY(links.join_bridge(*outside, bridge.index));
  TRY(links.raise(*outside));

  auto inside = TRY(sys::NetLinks::open_in(space, "the container's network namespace"));
  auto index = TRY(inside.find(kInside));
  if (!index) return make_error(Kind::interrupted, "find " + quote(kInside));
  sys::LinkAddress given;
  given.family = AF_INET;
  given.prefix_length = bridge.subnet.prefix_length;
  given.local = bytes_of(address);
  given.broadcast = bytes_of(bridge.subnet.last());
  TRY(inside.add(*index, given));
  TRY(inside.raise(*index));
  return inside.add_default_route(*index, bytes_of(bridge.gateway()));
}

/// Those of the host, as far as another machine can ask them: systemd-resolved has its real ones in
/// a file of its own.
Result<std::vector<std::string>> nameservers() {
  for (const char* path : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}) {
    auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, 65536));
    auto found = reachable(nameservers_of(text.value_or("")));
    if (!found.empty()) return found;
  }
  return fallback_nameservers();
}

Result<void> settle(const std::vector<Lease>& current, const Request& request, const Names& names,
                    const Bridge& bridge, Lease& lease) {
  std::vector<Ipv4> taken;
  for (const Lease& one : current) {
    if (auto address = parse_ipv4(one.address)) taken.push_back(*address);
  }
  auto address = choose_address(bridge.subnet, taken);
  if (!address) {
    return make_error(Kind::busy, "find an address in " + bridge.subnet.text() + ": all are taken");
  }
  lease.address = text_of(*address);
  lease.prefix_length = bridge.subnet.prefix_length;
  lease.gateway = lease.host = text_of(bridge.gateway());
  lease.mac = mac_text(*address);
  lease.interface = names.port_prefix + std::to_string(*address - bridge.subnet.base);
  lease.nameservers = TRY(nameservers());
  lease.ports = TRY(settle_ports(request.ports, current));
  return {};
}

}  // namespace

Result<void> tidy_bridge(Leases& leases, const std::vector<Lease>& current) {
  Names names = names_for(leases.path());
  auto links = TRY(sys::NetLinks::open());
  std::vector<Lease> used = bridged(current);
  if (used.empty()) return remove_all(leases, links, names);
  auto bridge = TRY(find_bridge(links, names));
  if (!bridge) return {};  // whoever is next makes it anew
  TRY(remove_strays(links, names, used));
  return set_rules(leases, names, bridge->subnet, used);
}

Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease) {
  Names names = names_for(leases.path());
  std::vector<Lease> current = TRY(leases.sweep());
  Rollback undo;
  undo.add([&] { ignore(tidy_bridge(leases, current)); });
  auto links = TRY(sys::NetLinks::open());
  auto opened = open_bridge(leases, links, names);
  if (!opened.ok()) {
    Error error =
        std::move(opened).error().with_context("cannot make bridge " + quote(names.bridge));
    if (error.hint.empty()) error.hint = kNoBridge;
    return error;
  }
  TRY(settle(current, request, names, *opened, lease));
  // The lease comes first: what is made for it can then be found by whoever is next.
  TRY(leases.write(lease));
  undo.add([&] { ignore(leases.remove(lease.id)); });
  std::vector<Lease> all = bridged(current);
  all.push_back(lease);
  TRY(set_rules(leases, names, opened->subnet, all));
  TRY_CTX(pass_others(names.bridge), "cannot pass the host's firewall");
  TRY_CTX(plug_in(links, space, *opened, lease, *parse_ipv4(lease.address)),
          "cannot give the container a network interface");
  undo.commit();
  return {};
}

Result<void> detach_bridge(Leases& leases, const Lease& lease) {
  auto links = TRY(sys::NetLinks::open());
  TRY(remove_link(links, lease.interface));
  TRY(leases.remove(lease.id));
  std::vector<Lease> left = TRY(leases.sweep());
  return tidy_bridge(leases, left);
}

}  // namespace berth::network
