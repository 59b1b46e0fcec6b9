// SPDX-License-Identifier: Apache-2.0
// The programs that connect a network namespace of an ordinary user to the outside: pasta(1) and
// slirp4netns(1). They turn packets of the namespace into connections of the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/address.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::network {

// Host numbers in the subnet and prefix of a user-mode network: the defaults of slirp4netns; we set
// the same for pasta.
inline constexpr uint16_t kHelperGateway = 2;
inline constexpr uint16_t kHelperNameserver = 3;
inline constexpr uint16_t kHelperInside = 100;
inline constexpr uint16_t kHelperInside6 = 0x100;

struct Host {
  Subnet subnet;                 ///< a free one
  std::optional<Prefix> prefix;  ///< a free one; none if the host has no IPv6 default route
  std::string address;           ///< of the default route's interface; empty: none
};
/// Examines the network namespace of this process; the subnet does not overlap `taken` either.
/// Errors: unsupported (no subnet is free), io.
Result<Host> look_at_host(std::vector<Subnet> taken = {});

struct HelperCall {
  std::string program;
  std::string name;  ///< of the helper's files in the directory of the leases
  Subnet subnet;
  std::vector<Published> ports;
  std::string interface = "eth0";
  std::string mac{};               ///< of the interface; empty: any
  bool stays = false;              ///< the helper keeps its socket, and ends with its parent
  std::optional<Prefix> prefix{};  ///< for pasta; none: IPv4 only
};

/// Starts pasta for `space` and waits until it is ready. Errors: io with pasta's own message,
/// interrupted.
Result<ProcessName> start_pasta(const Leases& leases, const HelperCall& call, const sys::Fd& space);
/// Starts slirp4netns in the same way. Errors: as start_pasta(), and busy (a port). Destroying the
/// result kills the process.
Result<sys::Process> start_slirp(const Leases& leases, const HelperCall& call,
                                 const sys::Fd& space);

/// The name of the socket of slirp4netns in the directory of the leases.
std::string slirp_socket(const std::string& name);

/// One request to slirp4netns over its socket, and its answer. Errors: io, not_found (it is not
/// running), interrupted. Source: slirp4netns(1) "API SOCKET"
Result<std::string> ask_slirp(const std::string& socket_path, const std::string& call);
/// Makes slirp4netns forward the host's `port` to port `inside`. Errors: busy with slirp4netns's
/// own message, and those of ask_slirp().
Result<void> publish_by_slirp(const std::string& socket_path, const Published& port,
                              uint16_t inside);

}  // namespace berth::network
