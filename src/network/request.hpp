// SPDX-License-Identifier: Apache-2.0
// The interface between berth and berth-network. berth-network is a hook of the container
// (docs/decisions/0090): its request is an argument, the container's id and process come in the
// state on its standard input, and its result is a lease, a file that berth reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::network {

/// Consecutive ports to publish: `count` ports of the host, from `host_first` on, lead to `count`
/// ports of the container, from `container_first` on.
struct Publish {
  std::string host_address;  ///< empty: all of IPv4
  uint16_t host_first = 0;   ///< 0: any free one
  uint16_t host_last = 0;    ///< if the range is larger than `count`: any free ports of the range
  uint16_t container_first = 0;
  uint16_t count = 1;
  std::string protocol = "tcp";  ///< tcp or udp
  bool operator==(const Publish&) const = default;
};
void fields(auto& v, Publish& p) {
  v.optional("host_address", p.host_address);
  v.optional("host_first", p.host_first);
  v.optional("host_last", p.host_last);
  v.required("container_first", p.container_first);
  v.required("count", p.count);
  v.required("protocol", p.protocol);
  v.strict();
}

/// One port as it was published.
struct Published {
  std::string host_address;  ///< "0.0.0.0" for all of IPv4, "::" for all of IPv6
  uint16_t host_port = 0;
  uint16_t container_port = 0;
  std::string protocol;
  uint16_t inner_port = 0;  ///< in the namespace of a user's networks, which forwards to the
                            ///< container; 0: none
  bool operator==(const Published&) const = default;
};
void fields(auto& v, Published& p) {
  v.required("host_address", p.host_address);
  v.required("host_port", p.host_port);
  v.required("container_port", p.container_port);
  v.required("protocol", p.protocol);
  v.optional("inner_port", p.inner_port);
}

inline constexpr const char* kNone = "none";  ///< disconnected from all its networks
inline constexpr const char* kBridge = "bridge";
inline constexpr const char* kPasta = "pasta";
inline constexpr const char* kSlirp = "slirp4netns";

/// A network that a container joins. berth manages names and subnets of networks, and passes them
/// to berth-network.
struct Attachment {
  std::string network;  ///< 64 digits; empty: the unnamed bridge
  std::string name;
  std::string subnet;  ///< "10.128.0.0/20"
  std::string gateway;
  std::string range;      ///< of the subnet, for containers without a requested address; empty: all
  bool internal = false;  ///< without a way out
  std::string address;    ///< requested; empty: any
  std::string mac;        ///< requested; empty: any
  std::vector<std::string> names;  ///< the container's names in it
};
void fields(auto& v, Attachment& a) {
  v.optional("network", a.network);
  v.optional("name", a.name);
  v.optional("subnet", a.subnet);
  v.optional("gateway", a.gateway);
  v.optional("range", a.range);
  v.optional("internal", a.internal);
  v.optional("address", a.address);
  v.optional("mac", a.mac);
  v.optional("names", a.names);
}

/// The request of `attach`.
struct Request {
  std::string mode;     ///< kBridge, kPasta, kSlirp or kNone
  std::string program;  ///< absolute path of pasta or slirp4netns
  std::vector<Publish> ports;
  std::string hosts_file;            ///< gets the container's address (names.hpp); empty: none
  std::string resolver_file;         ///< gets nameservers in place of its own; empty: none
  std::vector<Attachment> networks;  ///< with kBridge; empty: the unnamed bridge
  std::string mac;                   ///< requested without a named network; empty: any
  /// With kBridge: kPasta or kSlirp, which connects the bridges of an ordinary user, in a holder's
  /// network namespace, to the outside. Empty: the bridges of root, in the host's network
  /// namespace.
  std::string outside;
  /// With `outside`: the subnets of all networks of this user, which are inside the namespace.
  std::vector<std::string> taken;
  /// The user namespace of the caller existed before this call. Other processes in it then do not
  /// keep the holder alive.
  bool foreign_space = false;
};
void fields(auto& v, Request& r) {
  v.required("mode", r.mode);
  v.optional("program", r.program);
  v.optional("ports", r.ports);
  v.optional("hosts_file", r.hosts_file);
  v.optional("resolver_file", r.resolver_file);
  v.optional("networks", r.networks);
  v.optional("mac", r.mac);
  v.optional("outside", r.outside);
  v.optional("taken", r.taken);
  v.optional("foreign_space", r.foreign_space);
}

/// Identifies one process until the next boot.
struct ProcessName {
  int pid = 0;
  uint64_t start_time = 0;  ///< clock ticks since boot
  bool operator==(const ProcessName&) const = default;
};
void fields(auto& v, ProcessName& p) {
  v.required("pid", p.pid);
  v.required("start_time", p.start_time);
}

/// A container's connection to one bridge.
struct Endpoint {
  std::string network;  ///< `network` to `mac`: as in Attachment
  std::string name;
  std::string subnet;
  std::string gateway;
  bool internal = false;
  std::string address;
  std::string mac;
  std::string interface;  ///< the host's end
  std::string inside;     ///< the container's: "eth0"
  std::vector<std::string> names;
};
void fields(auto& v, Endpoint& e) {
  v.optional("network", e.network);
  v.optional("name", e.name);
  v.required("subnet", e.subnet);
  v.required("gateway", e.gateway);
  v.optional("internal", e.internal);
  v.required("address", e.address);
  v.required("mac", e.mac);
  v.required("interface", e.interface);
  v.required("inside", e.inside);
  v.optional("names", e.names);
}

/// The network of a container: <id>.json in the directory of the networks. It counts as long as
/// `holder` lives in the boot `boot_id`.
struct Lease {
  std::string id;
  std::string mode;
  std::string boot_id;
  ProcessName holder;   ///< the container's first process
  std::string address;  ///< of IPv4; empty: none
  uint8_t prefix_length = 0;
  std::string gateway;
  std::string ipv6_address;  ///< empty: none
  uint8_t ipv6_prefix_length = 0;
  std::string ipv6_gateway;
  std::string host;       ///< an address by which the container reaches the host; empty: none
  std::string mac;        ///< of the container's interface; empty: its helper chose it
  std::string interface;  ///< the host's end of that interface; only with a bridge
  std::vector<std::string> nameservers;
  std::vector<Publish> asked_ports;   ///< of the request; only with a bridge
  std::vector<Published> ports;       ///< none without a way out
  std::optional<ProcessName> helper;  ///< pasta or slirp4netns
  std::string hosts_file;             ///< of the request
  /// With a bridge: one for each network. Address, MAC and interface above are those of the
  /// endpoint that has a way out and the published ports.
  std::vector<Endpoint> endpoints;
  std::string outside;  ///< of the request: its bridges are in the holder's namespace
};
void fields(auto& v, Lease& l) {
  v.required("id", l.id);
  v.required("mode", l.mode);
  v.required("boot_id", l.boot_id);
  v.required("holder", l.holder);
  v.required("address", l.address);
  v.required("prefix_length", l.prefix_length);
  v.required("gateway", l.gateway);
  v.optional("ipv6_address", l.ipv6_address);
  v.optional("ipv6_prefix_length", l.ipv6_prefix_length);
  v.optional("ipv6_gateway", l.ipv6_gateway);
  v.optional("host", l.host);
  v.optional("mac", l.mac);
  v.optional("interface", l.interface);
  v.optional("nameservers", l.nameservers);
  v.optional("asked_ports", l.asked_ports);
  v.optional("ports", l.ports);
  v.optional("helper", l.helper);
  v.optional("hosts_file", l.hosts_file);
  v.optional("endpoints", l.endpoints);
  v.optional("outside", l.outside);
}

/// The process of an ordinary user that keeps open the network namespace with the bridges of the
/// user's networks; stored as kHolderFile in the directory of the networks. The record counts as
/// long as the process lives in the boot `boot_id`.
struct Holder {
  std::string boot_id;
  ProcessName process;
  int space = -1;                     ///< its descriptor of the network namespace
  std::string outside;                ///< kPasta or kSlirp
  std::string subnet;                 ///< between the namespace and the host
  std::string host;                   ///< an address by which the namespace reaches the host;
                                      ///< empty: none
  std::optional<ProcessName> helper;  ///< pasta, which does not end by itself
};
void fields(auto& v, Holder& h) {
  v.required("boot_id", h.boot_id);
  v.required("process", h.process);
  v.required("space", h.space);
  v.required("outside", h.outside);
  v.required("subnet", h.subnet);
  v.optional("host", h.host);
  v.optional("helper", h.helper);
}
inline constexpr const char* kHolderFile = "holder";
/// The lock of a process that makes or joins the holder's user namespace, and of a holder that
/// ends.
inline constexpr const char* kHolderLock = "holder.lock";

/// The path of container `id`'s lease in the directory of the networks.
inline std::string lease_file(const std::string& id) {
  return id + ".json";
}

/// A failure of berth-network as the line of JSON that it prints on standard error.
std::string write_failure(const Error& error);
/// The error in a hook's output; nothing for other output.
std::optional<Error> read_failure(std::string_view text);

}  // namespace berth::network
