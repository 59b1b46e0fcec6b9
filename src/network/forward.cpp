// SPDX-License-Identifier: Apache-2.0
#include "network/forward.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace berth::network {
namespace {

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != line.npos;
}

/// A rule of let_pass(): an interface, perhaps a counter, and "accept # handle 7".
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

std::vector<ForwardChain> forward_chains(std::string_view listing, std::string_view bridge) {
  std::vector<ForwardChain> found;
  std::string table, chain, quoted = "\"" + std::string(bridge) + "\"";
  bool inside = false;  // a chain that is asked
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
    // With a counter, as in iptables' own rules: then iptables can list them.
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
