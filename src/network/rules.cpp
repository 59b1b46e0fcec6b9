// SPDX-License-Identifier: Apache-2.0
#include "network/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::network {
namespace {

constexpr const char* kDefaultDirectory = "/run/berth/network";

bool is_word(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return plain || others.find(c) != others.npos;
  });
}

Error unchecked(std::string_view text) {
  return make_error(Kind::bug, "make rules with '" + std::string(text) + "'");
}

/// Rejects strings that could end a token of a rule.
Result<void> check(const Lease& lease) {
  if (!parse_ipv4(lease.address)) return unchecked(lease.address);
  if (!is_word(lease.mac, ":")) return unchecked(lease.mac);
  if (!is_word(lease.interface, ".")) return unchecked(lease.interface);
  for (const Published& port : lease.ports) {
    bool is_known = port.host_address == kFromOutside || parse_ipv4(port.host_address);
    if (!is_known) return unchecked(port.host_address);
    if (port.protocol != "tcp" && port.protocol != "udp") return unchecked(port.protocol);
  }
  return {};
}

Result<void> check(const RuleInputs& inputs) {
  if (!is_word(inputs.names.bridge, "")) return unchecked(inputs.names.bridge);
  if (!is_word(inputs.names.port_prefix, ".")) return unchecked(inputs.names.port_prefix);
  for (const Lease& lease : inputs.leases) TRY(check(lease));
  // Names of host interfaces may contain nearly any character; a name with a quote cannot be in a
  // rule.
  for (const std::string& name : inputs.forwarded) {
    if (!is_word(name, "._-@:")) return unchecked(name);
  }
  return {};
}

std::string drop(std::string_view family, const std::string& table) {
  // The table is added first, so that deleting it does not fail.
  return fmt::format("add table {0} {1}\ndelete table {0} {1}\n", family, table);
}

enum class To { any, outside, one };

To whom_to(const Published& port) {
  if (port.host_address == kFromOutside) return To::outside;
  return port.host_address == "0.0.0.0" ? To::any : To::one;
}

bool has_outside_ports(const RuleInputs& inputs) {
  return std::ranges::any_of(inputs.leases, [](const Lease& lease) {
    return std::ranges::any_of(lease.ports,
                               [](const Published& port) { return whom_to(port) == To::outside; });
  });
}

std::string ports_map(const RuleInputs& inputs, const std::string& protocol, To to) {
  static constexpr std::string_view kNames[] = {"any", "outside", "at"};
  bool any_address = to != To::one;
  std::string elements;
  for (const Lease& lease : inputs.leases) {
    for (const Published& port : lease.ports) {
      if (port.protocol != protocol || whom_to(port) != to) continue;
      std::string key = any_address ? "" : port.host_address + " . ";
      elements += fmt::format("{}{}{} : {} . {}", elements.empty() ? "" : ", ", key, port.host_port,
                              lease.address, port.container_port);
    }
  }
  return fmt::format("  map {}_{} {{ type {}inet_service : ipv4_addr . inet_service; {}}}\n",
                     protocol, kNames[static_cast<size_t>(to)], any_address ? "" : "ipv4_addr . ",
                     elements.empty() ? "" : "elements = { " + elements + " }; ");
}

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != line.npos;
}

/// Notes in `chain` a rule of let_pass(): an interface, perhaps a counter, and "accept # handle 7".
void read_rule(std::string_view line, const std::string& quoted, ForwardChain& chain) {
  size_t mark = line.find(" accept # handle ");
  if (mark == line.npos) return;
  auto words = split_blank(line);
  if (words.size() < 3 || words[1] != quoted) return;
  bool from = words[0] == "iifname", to = words[0] == "oifname";
  bool plain = words[2] == "accept" || words[2] == "counter";
  if ((!from && !to) || !plain) return;
  chain.accepts_from |= from;
  chain.accepts_to |= to;
  chain.handles.emplace_back(words.back());
}

}  // namespace

InterfaceNames names_for(const std::string& directory) {
  if (directory == kDefaultDirectory) return {"berth0", "bv0."};
  uint32_t hash = 2166136261;  // FNV-1a
  for (unsigned char c : directory) hash = (hash ^ c) * 16777619;
  std::string tag = fmt::format("{:06x}", hash & 0xffffff);
  return {"berth" + tag, "bv" + tag + "."};
}

InterfaceNames names_for_network(const std::string& id) {
  return {"berthn" + id.substr(0, 8), "bn" + id.substr(0, kNetworkDigits) + "."};
}

Result<std::string> make_rules(const RuleInputs& inputs) {
  TRY(check(inputs));
  const std::string& bridge = inputs.names.bridge;
  std::string subnet = inputs.subnet.text();
  const bool outside = has_outside_ports(inputs);
  std::string text = drop("ip", bridge) + fmt::format("table ip {} {{\n", bridge);
  for (const char* protocol : {"tcp", "udp"}) {
    text += ports_map(inputs, protocol, To::any) + ports_map(inputs, protocol, To::one);
    if (outside) text += ports_map(inputs, protocol, To::outside);
  }
  text += "  chain published {\n";
  for (const char* protocol : {"tcp", "udp"}) {
    text += fmt::format("    dnat ip to ip daddr . {0} dport map @{0}_at\n", protocol);
    text += fmt::format("    dnat ip to {0} dport map @{0}_any\n", protocol);
    if (outside) {
      text += fmt::format("    iifname \"{1}\" dnat ip to {0} dport map @{0}_outside\n", protocol,
                          kOutsideInterface);
    }
  }
  text += "  }\n";
  // The chains that lead to the published ports: for packets from elsewhere to an address of this
  // host, and for packets of this host to itself.
  text +=
      "  chain arriving {\n"
      "    type nat hook prerouting priority dstnat; policy accept;\n"
      "    fib daddr type local jump published\n"
      "  }\n"
      "  chain own {\n"
      "    type nat hook output priority -100; policy accept;\n"
      "    fib daddr type local jump published\n"
      "  }\n";
  text += fmt::format(
      "  chain leaving {{\n"
      "    type nat hook postrouting priority srcnat; policy accept;\n"
      "{2}"
      // For packets from this host to itself through a published port, and from a container to
      // itself in the same way. Without this rule the answer would take another route.
      "    ip saddr 127.0.0.0/8 oifname \"{0}\" masquerade\n"
      "    ip saddr {1} oifname \"{0}\" ct status dnat masquerade\n"
      "  }}\n",
      bridge, subnet,
      inputs.internal
          ? ""
          : fmt::format("    ip saddr {1} oifname != \"{0}\" masquerade\n", bridge, subnet));
  // The bridge may carry loopback addresses, for ports published on 127.0.0.1; a container that
  // sends to one would reach services that only this host's own programs may reach (CVE-2020-8558).
  text += fmt::format(
      "  chain guard {{\n"
      "    type filter hook prerouting priority raw; policy accept;\n"
      "    iifname \"{0}\" ip daddr 127.0.0.0/8 drop\n"
      "    iifname \"{0}\" ip saddr 127.0.0.0/8 drop\n"
      "  }}\n",
      bridge);
  // Other machines in the network of this host reach published ports, and nothing else of a
  // container.
  text += fmt::format(
      "  chain passing {{\n"
      "    type filter hook forward priority filter; policy accept;\n"
      "    oifname \"{0}\" iifname \"{0}\" accept\n"
      "{1}"
      "    oifname \"{0}\" ct state established,related accept\n"
      "    oifname \"{0}\" ct status dnat accept\n"
      "    oifname \"{0}\" drop\n",
      bridge,
      inputs.internal ? fmt::format("    iifname \"{0}\" drop\n    oifname \"{0}\" drop\n", bridge)
                      : "");
  for (const std::string& name : inputs.forwarded) {
    // The interface did not forward before, and must not begin to forward other packets.
    text += fmt::format("    iifname \"{}\" oifname != \"{}\" drop\n", name, kBridges);
  }
  text += "  }\n}\n";
  return text;
}

Result<std::string> make_bridge_rules(const RuleInputs& inputs) {
  TRY(check(inputs));
  std::string elements;
  for (const Lease& lease : inputs.leases) {
    elements += fmt::format("{}\"{}\" . {} . {}", elements.empty() ? "" : ", ", lease.interface,
                            lease.mac, lease.address);
  }
  std::string text = drop("bridge", inputs.names.bridge);
  text += fmt::format(
      "table bridge {0} {{\n"
      "  set ports {{ type ifname . ether_addr . ipv4_addr; {2}}}\n"
      "  chain honest {{\n"
      "    type filter hook prerouting priority -300; policy accept;\n"
      "    iifname != \"{1}*\" accept\n"
      "    iifname . ether saddr . ip saddr @ports accept\n"
      "    iifname . ether saddr . arp saddr ip @ports "
      "iifname . arp saddr ether . arp saddr ip @ports accept\n"
      "    drop\n"
      "  }}\n"
      "}}\n",
      inputs.names.bridge, inputs.names.port_prefix,
      elements.empty() ? "" : "elements = { " + elements + " }; ");
  return text;
}

std::string drop_rules(const InterfaceNames& names) {
  return drop("ip", names.bridge);
}

std::string drop_bridge_rules(const InterfaceNames& names) {
  return drop("bridge", names.bridge);
}

std::vector<ForwardChain> forward_chains(std::string_view listing, std::string_view bridge) {
  std::vector<ForwardChain> found;
  std::string table, chain, quoted = "\"" + std::string(bridge) + "\"";
  bool inside = false;  // inside a chain with the forward hook
  for (std::string_view line : split(listing, '\n')) {
    auto words = split_blank(line);
    if (words.size() >= 3 && words[0] == "table") {
      bool passed = (words[1] == "ip" || words[1] == "inet") && words[2] != bridge;
      table = passed ? fmt::format("{} {}", words[1], words[2]) : "";
    }
    if (words.size() >= 2 && words[0] == "chain") {
      chain = words[1];
      inside = false;
    }
    if (table.empty() || chain.empty()) continue;
    if (has(line, "hook forward")) {
      found.push_back({table + " " + chain, has(line, "policy drop"), false, false, {}});
      inside = true;
    } else if (inside) {
      read_rule(line, quoted, found.back());
    }
  }
  return found;
}

std::string let_pass(const std::vector<ForwardChain>& chains, std::string_view bridge) {
  std::string rules;
  for (const ForwardChain& chain : chains) {
    if (!chain.drops) continue;
    // With a counter, as in the rules of iptables, so that iptables can list them.
    constexpr auto kRule = "add rule {} {} \"{}\" counter accept\n";
    if (!chain.accepts_from) rules += fmt::format(kRule, chain.name, "iifname", bridge);
    if (!chain.accepts_to) rules += fmt::format(kRule, chain.name, "oifname", bridge);
  }
  return rules;
}

std::string stop_passing(const std::vector<ForwardChain>& chains) {
  std::string rules;
  for (const ForwardChain& chain : chains) {
    for (const std::string& handle : chain.handles) {
      rules += fmt::format("delete rule {} handle {}\n", chain.name, handle);
    }
  }
  return rules;
}

}  // namespace berth::network
