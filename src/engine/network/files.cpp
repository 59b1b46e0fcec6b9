// SPDX-License-Identifier: Apache-2.0
#include "engine/network/files.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "network/names.hpp"

namespace berth::engine {
namespace {

std::string own_hosts(const RunRequest& request, std::string_view hostname) {
  std::string text =
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::\tip6-localnet\n"
      "ff00::\tip6-mcastprefix\n"
      "ff02::1\tip6-allnodes\n"
      "ff02::2\tip6-allrouters\n";
  // Loopback is the only address, but the name must resolve, or MPI and sudo stall.
  text += std::string(network::kOwnAddress) + "\t";
  if (request.domainname) text += std::string(hostname) + "." + *request.domainname + " ";
  text += hostname;
  // Programs also look up the short name.
  size_t dot = hostname.find('.');
  if (dot != std::string_view::npos) text += " " + std::string(hostname.substr(0, dot));
  return text + "\n";
}

/// Whether a flag replaces this line of resolv.conf.
bool is_replaced(const RunRequest& request, std::string_view line) {
  auto words = split_blank(line);
  if (words.empty()) return false;
  if (words[0] == "nameserver") return !request.dns.empty();
  if (words[0] == "search" || words[0] == "domain") return !request.dns_search.empty();
  return words[0] == "options" && !request.dns_option.empty();
}

}  // namespace

Result<std::string> hosts_text(const RunRequest& request, std::string_view hostname,
                               std::string_view host_text) {
  bool shared = request.network == Network::host;
  std::string text = shared ? std::string(host_text) : own_hosts(request, hostname);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& entry : request.add_host) {
    size_t colon = entry.find(':');
    std::string address = entry.substr(colon + 1);
    // With outside access, berth-network knows the address and writes it.
    if (address == network::kHostGateway && !has_way_out(request.network)) {
      if (!shared) {
        return make_error(Kind::unsupported,
                          "--add-host " + quote(entry) + ": this network has no route to the host",
                          "--network host");
      }
      address = "127.0.0.1";
    }
    text += address + "\t" + entry.substr(0, colon) + "\n";
  }
  return text;
}

std::string resolver_text(const RunRequest& request, std::string_view host_text) {
  if (request.dns.empty() && request.dns_search.empty() && request.dns_option.empty()) {
    return std::string(host_text);
  }
  std::string text;
  for (std::string_view line : split(host_text, '\n')) {
    if (!line.empty() && !is_replaced(request, line)) text += std::string(line) + "\n";
  }
  bool searches =
      !request.dns_search.empty() && request.dns_search != std::vector<std::string>{"."};
  if (searches) text += "search " + join(request.dns_search, " ") + "\n";
  for (const std::string& server : request.dns) text += "nameserver " + server + "\n";
  if (!request.dns_option.empty()) text += "options " + join(request.dns_option, " ") + "\n";
  return text;
}

}  // namespace berth::engine
