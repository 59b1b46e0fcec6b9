// SPDX-License-Identifier: Apache-2.0
#include "network/forward.hpp"

#include "base/text.hpp"

namespace berth::network {
namespace {

struct Table {
  std::string name;  ///< "ip filter"; empty: not one that IPv4 passes
  std::vector<std::string> dropping;
  bool accepts_from = false;
  bool accepts_to = false;
};

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != line.npos;
}

}  // namespace

std::vector<std::string> dropping_chains(std::string_view listing, std::string_view bridge) {
  std::vector<std::string> found;
  Table table;
  std::string chain;
  auto close = [&] {
    if (table.accepts_from && table.accepts_to) return;
    for (const std::string& one : table.dropping) found.push_back(table.name + " " + one);
  };
  std::string name = "\"" + std::string(bridge) + "\"";
  for (std::string_view line : split(listing, '\n')) {
    auto words = split_blank(line);
    if (words.size() >= 3 && words[0] == "table") {
      close();
      table = {};
      bool passed = words[1] == "ip" || words[1] == "inet";
      if (passed) table.name = std::string(words[1]) + " " + std::string(words[2]);
    }
    if (words.size() >= 2 && words[0] == "chain") chain = words[1];
    if (table.name.empty()) continue;
    if (has(line, "hook forward") && has(line, "policy drop")) table.dropping.push_back(chain);
    if (words.empty() || words.back() != "accept") continue;
    table.accepts_from |= has(line, "iifname " + name);
    table.accepts_to |= has(line, "oifname " + name);
  }
  close();
  return found;
}

}  // namespace berth::network
