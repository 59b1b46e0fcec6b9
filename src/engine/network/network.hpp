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

/// Networks of containers. berth decides and writes hooks into the config; berth-network, which
/// they call, makes the network (docs/decisions/0090).
namespace berth::engine {

/// What the user said of the network: texts of --network ("" where it was not given) and --publish.
struct NetworkFlags {
  std::string mode{};
  std::vector<std::string> publish{};
  bool publish_all = false;
  std::vector<std::string> more{};     ///< of a second --network and further ones
  std::vector<std::string> aliases{};  ///< in the first network with a name
  std::string address{};               ///< there
  std::string mac{};                   ///< of read_mac(); in the first network
};
/// Puts what the flags mean into `request`. Without --network it is the default
/// (default_network.hpp), or "bridge" where ports are published and the default cannot. Errors:
/// usage (an unknown mode, names or an address where no network has a name, a port that is none,
/// ports and another container's network), unsupported (IPv6, sctp), those of default_network() and
/// of parse_joined_network().
Result<void> read_network(const Context& context, const NetworkFlags& flags, RunRequest& request);

/// Lets `spec`, of container `id`, make and remove the network of `request`, where it is one of its
/// own with a way out. What that needs of this machine is looked at first.
/// Errors: unsupported (neither pasta nor slirp4netns), denied and not_found (/dev/net/tun), usage
/// (one of them for root).
Result<void> add_network(const Context& context, const RunRequest& request,
                         const oci::ContainerDefaults& image, const std::string& id,
                         oci::Spec& spec);

/// The same of a config that is there: its hook is told of `networks`, or of none at all.
void change_networks(oci::Spec& spec, const std::vector<network::Attachment>& networks);

/// Calls berth-network with `words` for a container that runs. Errors: what it says.
Result<void> call_network(const Context& context, std::vector<std::string> words);

/// Whether this machine has what `network` needs of it for the caller.
/// Errors: unsupported (neither pasta nor slirp4netns), denied and not_found (/dev/net/tun).
Result<void> check_network(const Context& context, Network network);

/// What --expose and the image say, without what is no port.
std::vector<network::Exposed> exposed_ports(const RunRequest& request,
                                            const oci::ContainerDefaults& image);

/// One line of `berth port`: "80/tcp -> 0.0.0.0:8080", or the right half where a port was asked
/// for. Errors: not_found (container; "No public port '80/tcp' published for web"), usage (no
/// port).
Result<std::vector<std::string>> list_published(const Context& context, std::string_view reference,
                                                std::string_view port);

}  // namespace berth::engine
