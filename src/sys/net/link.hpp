// SPDX-License-Identifier: Apache-2.0
// Network interfaces over rtnetlink(7). A NetLinks object works on the network namespace in which
// it was opened, even after its process has entered another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

enum class IpVersion { v4, v6 };

/// A permanent address of global scope, as the kernel reports it.
struct LinkAddress {
  uint8_t family = 0;
  uint8_t prefix_length = 0;
  std::string local;  ///< 4 or 16 bytes
  std::string peer;   ///< empty: the same as `local`
  std::string broadcast;
  bool operator==(const LinkAddress&) const = default;
};

/// The permanent global addresses of interface `index` in the messages of an RTM_GETADDR dump;
/// stops at an invalid length. Pure.
std::vector<LinkAddress> parse_addresses(std::string_view messages, uint32_t index);

/// A route as the kernel reports it.
struct Route {
  std::string destination;  ///< 4 bytes, or 16 for IPv6
  uint8_t prefix_length = 0;
  uint32_t index = 0;     ///< index of the interface; 0: none
  bool discards = false;  ///< the route drops packets: blackhole, unreachable, prohibit, throw
  bool operator==(const Route&) const = default;
};

/// The routes to other machines (unicast, blackhole, unreachable) in the messages of an
/// RTM_GETROUTE dump; stops at an invalid length. Pure.
std::vector<Route> parse_routes(std::string_view messages);

struct LinkName {
  uint32_t index = 0;
  std::string name;
  bool operator==(const LinkName&) const = default;
};
/// Parses an RTM_GETLINK dump, as parse_routes().
std::vector<LinkName> parse_links(std::string_view messages);

/// Opens `path` of /proc/sys/net in the namespace `space`, which is entered for a moment; for
/// processes without threads. Errors: denied, not_found. setns(2), network_namespaces(7)
Result<Fd> open_in_net_space(const Fd& space, const std::string& name, const std::string& path,
                             int flags);

class NetLinks {
 public:
  /// Works in the network namespace of this process. socket(2) AF_NETLINK
  static Result<NetLinks> open();
  /// Works in the network namespace `space`, which is entered for a moment; for processes without
  /// threads.
  /// Errors: denied (no CAP_SYS_ADMIN over it). setns(2)
  static Result<NetLinks> open_in(const Fd& space, const std::string& name);

  /// The index of an interface, or nothing. RTM_GETLINK
  Result<std::optional<uint32_t>> find(const std::string& name);
  /// RTM_GETADDR
  Result<std::vector<LinkAddress>> addresses(uint32_t index);
  /// Moves an interface to another namespace and renames it to `name`. It arrives there down and
  /// without addresses. Errors: io with EINVAL (an interface that cannot leave its namespace),
  /// exists. RTM_NEWLINK
  Result<void> move(uint32_t index, const Fd& space, const std::string& name);
  /// A pattern such as "eth%d" gets the first free number. Errors: exists. RTM_NEWLINK
  Result<void> rename(uint32_t index, const std::string& name);
  /// RTM_NEWADDR
  Result<void> add(uint32_t index, const LinkAddress& address);
  /// RTM_NEWLINK
  Result<void> raise(uint32_t index);

  // ---- make.cpp: new links
  /// Errors: exists, denied, unsupported (no bridges in this kernel). RTM_NEWLINK
  Result<void> make_bridge(const std::string& name, std::string_view mac);
  /// Makes an interface here and its peer in `space`, with the name `peer_name` and the address
  /// `mac`.
  /// Errors: exists, denied. RTM_NEWLINK, veth(4)
  Result<void> make_pair(const std::string& name, const Fd& space, const std::string& peer_name,
                         std::string_view mac);
  /// Adds the interface to the bridge as a hairpin port, which also sends packets back to the port
  /// that they came from. With the IPv4 firewall on bridges (bridge-nf-call-iptables), a container
  /// reaches its own published port that way. RTM_NEWLINK IFLA_MASTER, IFLA_BRPORT_MODE
  Result<void> join_bridge(uint32_t index, uint32_t bridge);
  /// Removes an interface; no error if it is missing. RTM_DELLINK
  Result<void> remove(uint32_t index);
  /// Adds the IPv4 default route through `gateway`, 4 bytes. RTM_NEWROUTE
  Result<void> add_default_route(uint32_t index, std::string_view gateway);
  /// The routes of all tables; empty for a version of IP that this kernel lacks. RTM_GETROUTE
  Result<std::vector<Route>> routes(IpVersion version = IpVersion::v4);
  /// RTM_GETLINK
  Result<std::vector<LinkName>> links();

 private:
  explicit NetLinks(Fd socket) : socket_(std::move(socket)) {}
  Result<std::string> exchange(std::string message, const std::string& what);
  Fd socket_;
  uint32_t sequence_ = 0;
};

}  // namespace berth::sys
