// SPDX-License-Identifier: Apache-2.0
#include "network/name_files.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "network/address.hpp"

namespace berth::network {
namespace {

bool is_nameserver(const std::vector<std::string_view>& words) {
  return words.size() >= 2 && words[0] == "nameserver";
}

constexpr std::string_view kBegin = "# those in the container's networks, by berth";
constexpr std::string_view kEnd = "# end of those";

bool is_host_word(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127 && c != '#'; });
}

}  // namespace

std::vector<std::string> nameservers_of(std::string_view resolv_conf) {
  std::vector<std::string> found;
  for (std::string_view line : split(resolv_conf, '\n')) {
    auto words = split_blank(line);
    if (is_nameserver(words)) found.emplace_back(words[1]);
  }
  return found;
}

std::vector<std::string> reachable(const std::vector<std::string>& nameservers) {
  std::vector<std::string> found;
  for (const std::string& text : nameservers) {
    auto address = parse_ipv4(text);
    bool usable = address && (*address >> 24) != 127 && *address != 0;
    if (usable) found.push_back(text);
  }
  return found;
}

std::vector<std::string> reachable_by_ipv6(const std::vector<std::string>& nameservers) {
  static const Prefix kLink{parse_ipv6("fe80::").value_or(""), 10};
  static const Prefix kOfNoOther{parse_ipv6("::").value_or(""), 127};  // "::" and "::1"
  std::vector<std::string> found;
  for (const std::string& text : nameservers) {
    auto address = parse_ipv6(text);
    bool usable = address && !kLink.contains(*address) && !kOfNoOther.contains(*address);
    if (usable) found.push_back(text);
  }
  return found;
}

std::vector<std::string> fallback_nameservers() {
  return {"8.8.8.8", "8.8.4.4"};
}

std::string with_nameservers(std::string_view resolv_conf,
                             const std::vector<std::string>& nameservers) {
  std::string text;
  for (std::string_view line : split(resolv_conf, '\n')) {
    auto words = split_blank(line);
    bool dropped =
        words.empty() || is_nameserver(words) || words[0][0] == '#' || words[0][0] == ';';
    if (!dropped) text += std::string(line) + "\n";
  }
  for (const std::string& one : nameservers) text += "nameserver " + one + "\n";
  return text;
}

std::string with_addresses(std::string_view hosts, std::string_view own, std::string_view host) {
  std::string text;
  for (std::string_view line : split(hosts, '\n')) {
    for (auto [placeholder, address] : {std::pair{kOwnAddress, own}, {kHostGateway, host}}) {
      if (!line.starts_with(placeholder) || address.empty()) continue;
      text += address;
      line.remove_prefix(placeholder.size());
      break;
    }
    text += line;
    text += '\n';
  }
  // The part after the last newline is not a line.
  if (!text.empty()) text.pop_back();
  return text;
}

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
  // Searched only once: in a file that a container wrote, every line may begin a block, and one
  // search per line would take quadratic time.
  size_t last_end = hosts.rfind(kEnd);
  size_t at = 0;
  while (at < hosts.size()) {
    size_t end = std::min(hosts.find('\n', at), hosts.size());
    std::string_view line = hosts.substr(at, end - at);
    at = end + 1;
    // A block without an end mark does not hide the lines that follow.
    if (line == kBegin) inside = last_end != hosts.npos && last_end >= at;
    if (!inside && line != kBegin && line != kEnd) text += std::string(line) + "\n";
    if (line == kEnd) inside = false;
  }
  if (lines.empty()) return text;
  return text + std::string(kBegin) + "\n" + std::string(lines) + std::string(kEnd) + "\n";
}

}  // namespace berth::network
