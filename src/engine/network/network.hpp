// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "network/publish.hpp"
#include "oci/image_spec.hpp"
#include "oci/runtime_spec.hpp"

/// Networks of containers. berth chooses the network and writes hooks into the config; the hooks
/// call berth-network, which makes the network (docs/decisions/0090).
namespace berth::engine {

/// The network flags of the user: values of --network ("" if not given) and --publish.
struct NetworkFlags {
  std::string mode{};
  std::vector<std::string> publish{};
  bool publish_all = false;
  std::vector<std::string> more{};     ///< values of the second and every further --network
  std::vector<std::string> aliases{};  ///< of the container in the first named network
  std::string address{};               ///< of the container in the first named network
  std::string mac{};                   ///< from read_mac(); of the container in the first network
};
/// Applies the flags to `request`. Without --network uses the default (default_network()), or
/// "bridge" if ports are published and the default cannot do so. Errors: usage (an unknown mode,
/// names or an address without a named network, an invalid port, ports with another container's
/// network), unsupported (IPv6, sctp), those of default_network() and of parse_joined_network().
Result<void> apply_network_flags(const Context& context, const NetworkFlags& flags,
                                 RunRequest& request);

/// Adds hooks to the `spec` of container `id` that make and remove the network of `request`, if
/// that is a private network with outside access. First checks that this machine has what the
/// network needs.
/// Errors: unsupported (neither pasta nor slirp4netns), denied and not_found (/dev/net/tun), usage
/// (root requests pasta or slirp4netns).
Result<void> add_network(const Context& context, const RunRequest& request,
                         const oci::ContainerDefaults& image, const std::string& id,
                         oci::Spec& spec);

/// Changes the networks in the hooks of an existing config to `networks`, which may be empty.
void change_networks(oci::Spec& spec, const std::vector<network::Attachment>& networks);

/// Runs berth-network with the arguments `words` for a running container. Errors: those that
/// berth-network reports.
Result<void> call_network(const Context& context, std::vector<std::string> words);

/// Checks that this machine has what `network` needs for the caller.
/// Errors: unsupported (neither pasta nor slirp4netns), denied and not_found (/dev/net/tun).
Result<void> check_network(const Context& context, Network network);

/// The ports of --expose and the image, without invalid ones.
std::vector<network::Exposed> exposed_ports(const RunRequest& request,
                                            const oci::ContainerDefaults& image);

/// The lines of `berth port`: "80/tcp -> 0.0.0.0:8080", or only the right half if `port` is given.
/// Errors: not_found (container; "No public port '80/tcp' published for web"), usage (not a port).
Result<std::vector<std::string>> list_published(const Context& context, std::string_view reference,
                                                std::string_view port);

/// The content of /etc/hosts. Pure. `host_text`: the file of the host, which a container in the
/// host's network gets. Other containers get loopback and their own name. The entries of --add-host
/// come last.
/// Errors: unsupported (host-gateway without a route to the host).
Result<std::string> hosts_text(const RunRequest& request, std::string_view hostname,
                               std::string_view host_text);

/// The content of /etc/resolv.conf. Pure. The host's file, with the values of --dns, --dns-search
/// and --dns-option in place of the host's; a search domain of "." means none.
std::string resolver_text(const RunRequest& request, std::string_view host_text);

}  // namespace berth::engine
