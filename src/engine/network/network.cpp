// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/network/attachment.hpp"
#include "engine/network/choose_helper.hpp"
#include "engine/network/default_network.hpp"
#include "engine/network/leases.hpp"
#include "engine/network/network_store.hpp"
#include "engine/request/text.hpp"
#include "engine/state/directory.hpp"
#include "json/fields.hpp"
#include "network/address.hpp"
#include "network/name_files.hpp"
#include "network/publish.hpp"
#include "network/request.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {
namespace {

constexpr const char* kProgram = "berth-network";
constexpr std::string_view kContainer = "container:";
constexpr int64_t kLongest = 120;  // seconds; many containers may wait for one another
constexpr size_t kMaxNetworkLease = size_t{16} << 20;
constexpr size_t kMostExposed = 512;           // published by -P
constexpr size_t kMostOfArgument = 120 << 10;  // bytes; execve(2): 128 KiB for one argument

Result<void> choose_mode(const Context& context, const RunRequest& asked,
                         network::Request& request) {
  if (context.identity != Identity::root) {
    TRY(asked.networks.empty() ? choose_helper(context, asked, request)
                               : choose_outside(context, asked, request));
    return network::check_versions(asked.publish, request.mode);
  }
  request.mode = network::kBridge;
  // If pasta or slirp4netns is only the default, it is not an error for root.
  if (asked.network == Network::bridge || !asked.network_asked) {
    return network::check_versions(asked.publish, request.mode);
  }
  return make_error(Kind::usage,
                    "network " + quote(to_json_text(asked.network)) + " is for ordinary users",
                    "--network bridge");
}

oci::Hook hook(const std::string& program, std::vector<std::string> words) {
  oci::Hook made;
  made.path = program;
  made.args = {kProgram};
  std::move(words.begin(), words.end(), std::back_inserter(made.args));
  made.env.emplace();  // an empty environment
  made.timeout = kLongest;
  return made;
}

/// Applies the second and every further --network.
Result<void> join_more(const Context& context, const NetworkFlags& flags, RunRequest& request) {
  if (!flags.more.empty() && request.networks.empty()) {
    request.networks = {TRY(parse_joined_network(context, flags.mode))};
  }
  for (const std::string& text : flags.more) {
    JoinedNetwork joined = TRY(parse_joined_network(context, text));
    bool twice = std::ranges::any_of(
        request.networks, [&](const JoinedNetwork& one) { return one.name == joined.name; });
    if (twice) {
      return make_error(Kind::usage,
                        "network " + quote(joined.name) + " is specified multiple times");
    }
    request.networks.push_back(std::move(joined));
  }
  return {};
}

/// Applies the flags for the first network.
void add_to_first(const NetworkFlags& flags, JoinedNetwork& first) {
  first.aliases.insert(first.aliases.end(), flags.aliases.begin(), flags.aliases.end());
  if (!flags.address.empty()) first.address = flags.address;
  if (!flags.mac.empty()) first.mac = flags.mac;
}

/// Fails for an address or aliases: the default network assigns addresses itself, and has no names.
Result<void> check_default(const JoinedNetwork& joined) {
  constexpr const char* kCreate = "berth network create NAME, then --network NAME";
  if (!joined.aliases.empty()) {
    return make_error(Kind::usage,
                      "network-scoped alias is supported only for containers in user defined "
                      "networks",
                      kCreate);
  }
  if (joined.address.empty()) return {};
  return make_error(
      Kind::usage, "user specified IP address is supported on user defined networks only", kCreate);
}

/// Applies the network flags other than --network.
Result<void> place_network_flags(const NetworkFlags& flags, RunRequest& request) {
  JoinedNetwork alone;
  alone.name = kDefaultNetwork;
  add_to_first(flags, request.networks.empty() ? alone : request.networks.front());
  if (request.networks.empty()) request.networks.push_back(std::move(alone));
  for (const JoinedNetwork& one : request.networks) {
    if (one.name == kDefaultNetwork) TRY(check_default(one));
  }
  bool any = std::ranges::any_of(
      request.networks, [](const JoinedNetwork& one) { return one.name != kDefaultNetwork; });
  request.mac_address = request.networks.front().mac;
  if (!any) request.networks.clear();
  if (request.mac_address.empty()) return {};
  bool is_of_others = request.network == Network::container || request.network == Network::host;
  if (!is_of_others) return {};
  return make_error(Kind::usage, "conflicting options: mac-address and the network mode",
                    "--network bridge, or a network with a name");
}

constexpr std::chrono::seconds kCallPatience{kLongest};

std::string own_hosts(const RunRequest& request, std::string_view hostname) {
  std::string text =
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::\tip6-localnet\n"
      "ff00::\tip6-mcastprefix\n"
      "ff02::1\tip6-allnodes\n"
      "ff02::2\tip6-allrouters\n";
  // The host name must resolve, or MPI and sudo stall. berth-network replaces this address if the
  // container has another one than loopback.
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

Result<void> apply_network_flags(const Context& context, const NetworkFlags& flags,
                                 RunRequest& request) {
  for (const std::string& text : flags.publish) {
    request.publish.push_back(TRY(network::parse_publish(text)));
  }
  request.publish_all = flags.publish_all;
  request.network_asked = true;
  bool publishes = !request.publish.empty() || request.publish_all;
  if (flags.mode.starts_with(kContainer) && flags.mode.size() > kContainer.size()) {
    request.network = Network::container;
    request.network_container = flags.mode.substr(kContainer.size());
  } else if (auto word = parse_network(flags.mode); word.ok()) {
    request.network = *word;
  } else if (!flags.mode.empty()) {
    request.network = Network::bridge;
    request.networks = {TRY(parse_joined_network(context, flags.mode))};
  } else {
    DefaultNetwork usual = TRY(default_network(context.environment, context.paths.config));
    // A requested port is published regardless of the default network.
    request.network = publishes && !has_way_out(usual.network) ? Network::bridge : usual.network;
    request.network_asked = publishes || usual.source == kNetworkVariable;
  }
  TRY(join_more(context, flags, request));
  TRY(place_network_flags(flags, request));
  if (publishes && request.network == Network::container) {
    return make_error(Kind::usage,
                      "conflicting options: port publishing and the container type network mode");
  }
  return {};
}

namespace {

/// Limits the number of ports that an image can expose, because each needs a socket on the host.
Result<void> check_exposed(const std::vector<network::Exposed>& exposed) {
  size_t count = 0;
  for (const network::Exposed& one : exposed) count += one.last - one.first + 1u;
  if (count <= kMostExposed) return {};
  return make_error(Kind::denied,
                    "-P: " + std::to_string(count) + " ports are exposed; at most " +
                        std::to_string(kMostExposed) + " are published",
                    "-p for those that are needed");
}

}  // namespace

Result<void> add_network(const Context& context, const RunRequest& request,
                         const oci::ContainerDefaults& image, const std::string& id,
                         oci::Spec& spec) {
  bool publishes = !request.publish.empty() || request.publish_all;
  if (publishes && (request.network == Network::host || request.network == Network::none)) {
    context.log.warn("Published ports are discarded when using " + to_json_text(request.network) +
                     " network mode, ignoring");
  }
  if (!request.mac_address.empty() && request.network == Network::none) {
    context.log.warn("--mac-address is discarded when using none network mode, ignoring");
  }
  if (!has_way_out(request.network)) return {};
  std::string program = TRY(sys::own_program(context.paths.libexec, kProgram, "BERTH_NETWORK"));
  network::Request wanted;
  TRY(choose_mode(context, request, wanted));
  auto all = request.publish_all ? network::PublishAll::yes : network::PublishAll::no;
  std::vector<network::Exposed> exposed = exposed_ports(request, image);
  if (request.publish_all) TRY(check_exposed(exposed));
  wanted.ports = network::all_ports(request.publish, exposed, all);
  std::string files = container_path(context.paths, id) + "/";
  wanted.hosts_file = files + std::string(kHostsFile);
  // --dns takes precedence.
  if (request.dns.empty()) wanted.resolver_file = files + std::string(kResolverFile);
  wanted.mac = request.mac_address;
  wanted.networks = TRY(attachments_of(context, request, id));
  std::string directory = network_directory(context);
  std::string text = json::write(wanted);
  if (text.size() > kMostOfArgument) {
    return make_error(
        Kind::usage,
        std::to_string(wanted.ports.size()) + " ranges of ports are too many to publish",
        "fewer and longer ranges: -p 8000-8999:8000-8999");
  }
  spec.hooks.create_runtime.push_back(hook(program, {"attach", directory, std::move(text)}));
  spec.hooks.poststop.push_back(hook(program, {"detach", directory}));
  return {};
}

void change_networks(oci::Spec& spec, const std::vector<network::Attachment>& networks) {
  for (oci::Hook& hook : spec.hooks.create_runtime) {
    bool is_ours = hook.args.size() == 4 && hook.args[0] == kProgram && hook.args[1] == "attach";
    if (!is_ours) continue;
    auto request = json::read<network::Request>(hook.args[3], "the request of berth-network");
    if (!request.ok()) continue;
    bool is_ordinary = !request->outside.empty() || request->mode == network::kPasta ||
                       request->mode == network::kSlirp;
    if (is_ordinary && request->outside.empty()) request->outside = request->mode;
    bool only_default = networks.size() == 1 && networks.front().network.empty();
    request->networks = networks;
    request->mode = networks.empty() ? network::kNone : network::kBridge;
    if (is_ordinary && only_default) {
      request->mode = std::exchange(request->outside, "");
      request->networks.clear();
    }
    hook.args[3] = json::write(*request);
  }
}

Result<void> call_network(const Context& context, std::vector<std::string> words) {
  sys::SpawnOptions spawn;
  spawn.program = TRY(sys::own_program(context.paths.libexec, kProgram, "BERTH_NETWORK"));
  std::string verb = words[0];
  words.insert(words.begin() + 1, network_directory(context));
  words.insert(words.begin(), kProgram);
  spawn.args = std::move(words);
  auto output = TRY(sys::run_command(spawn, "", kCallPatience, kMaxNetworkLease));
  if (output.status.shell_code() == 0) return {};
  auto told = network::read_failure(output.err);
  if (told) return std::move(*told);
  return make_error(Kind::bug, "berth-network " + verb + ": " + escape_controls(trim(output.err)));
}

Result<void> check_network(const Context& context, Network network) {
  if (!has_way_out(network)) return {};
  RunRequest asked;
  asked.network = network;
  network::Request unused;
  return choose_mode(context, asked, unused);
}

std::vector<network::Exposed> exposed_ports(const RunRequest& request,
                                            const oci::ContainerDefaults& image) {
  std::vector<network::Exposed> exposed;
  for (const std::string& text : request.expose) {
    if (auto one = network::parse_exposed(text); one.ok()) exposed.push_back(*one);
  }
  // The image's config is untrusted: as in docker, invalid ports are skipped.
  for (const auto& [text, nothing] : image.exposed_ports) {
    if (auto one = network::parse_exposed(text); one.ok()) exposed.push_back(*one);
  }
  return exposed;
}

Result<std::vector<std::string>> list_published(const Context& context, std::string_view reference,
                                                std::string_view port) {
  std::optional<network::Exposed> wanted;
  if (!port.empty()) {
    auto parsed = network::parse_exposed(port);
    if (!parsed.ok() || parsed->first != parsed->last) {
      return make_error(Kind::usage, "port " + quote(port) + ": expected one, such as 80/tcp");
    }
    wanted = *parsed;
  }
  ContainerSummary container = TRY(get_container(context, reference));
  auto lease = TRY(find_lease(context, container.id));
  std::vector<network::Published> ports;
  if (lease) ports = std::move(lease->ports);
  std::ranges::stable_sort(ports, [](const auto& a, const auto& b) {
    return std::tie(a.container_port, a.protocol) < std::tie(b.container_port, b.protocol);
  });
  std::vector<std::string> lines;
  for (const network::Published& one : ports) {
    std::string outside = network::with_port(one.host_address, one.host_port);
    std::string inside = std::to_string(one.container_port) + "/" + one.protocol;
    if (!wanted) {
      lines.push_back(inside + " -> " + outside);
    } else if (one.container_port == wanted->first && one.protocol == wanted->protocol) {
      lines.push_back(outside);
    }
  }
  if (wanted && lines.empty()) {
    return make_error(Kind::not_found, "No public port '" + std::to_string(wanted->first) + "/" +
                                           wanted->protocol + "' published for " +
                                           std::string(reference));
  }
  return lines;
}

Result<std::string> hosts_text(const RunRequest& request, std::string_view hostname,
                               std::string_view host_text) {
  bool shared = request.network == Network::host;
  std::string text = shared ? std::string(host_text) : own_hosts(request, hostname);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& entry : request.add_host) {
    size_t colon = entry.find(':');
    std::string address = entry.substr(colon + 1);
    // If the network has outside access, berth-network knows the address and writes it later.
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
