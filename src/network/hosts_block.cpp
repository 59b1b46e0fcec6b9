// SPDX-License-Identifier: Apache-2.0
#include "network/hosts_block.hpp"

#include <algorithm>

#include "network/ipv4.hpp"

namespace berth::network {
namespace {

constexpr std::string_view kBegin = "# those in the container's networks, by berth";
constexpr std::string_view kEnd = "# end of those";

bool is_host_word(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127 && c != '#'; });
}

}  // namespace

std::string peer_lines(const Lease& lease, const std::vector<Lease>& leases) {
  std::string text;
  for (const Endpoint& own : lease.endpoints) {
    if (own.network.empty()) continue;
    std::vector<std::pair<Ipv4, std::string>> lines;
    for (const Lease& peer : leases) {
      for (const Endpoint& one : peer.endpoints) {
        auto address = parse_ipv4(one.address);
        if (one.network != own.network || !address) continue;
        std::string names;
        for (const std::string& name : one.names) {
          if (is_host_word(name)) names += (names.empty() ? "\t" : " ") + name;
        }
        if (!names.empty()) lines.emplace_back(*address, one.address + names + "\n");
      }
    }
    std::ranges::sort(lines);
    for (const auto& [address, line] : lines) text += line;
  }
  return text;
}

std::string with_block(std::string_view hosts, std::string_view lines) {
  std::string text;
  bool inside = false;
  // Searched once: every line of a file that a container wrote may begin a block, and a search for
  // each would take quadratic time.
  size_t last_end = hosts.rfind(kEnd);
  size_t at = 0;
  while (at < hosts.size()) {
    size_t end = std::min(hosts.find('\n', at), hosts.size());
    std::string_view line = hosts.substr(at, end - at);
    at = end + 1;
    // A block without its end mark swallows no further lines.
    if (line == kBegin) inside = last_end != hosts.npos && last_end >= at;
    if (!inside && line != kBegin && line != kEnd) text += std::string(line) + "\n";
    if (line == kEnd) inside = false;
  }
  if (lines.empty()) return text;
  return text + std::string(kBegin) + "\n" + std::string(lines) + std::string(kEnd) + "\n";
}

}  // namespace berth::network
