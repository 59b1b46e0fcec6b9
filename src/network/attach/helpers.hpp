// SPDX-License-Identifier: Apache-2.0
// The programs that give a network namespace of an ordinary user a way out: pasta(1) and
// slirp4netns(1). They make connections of the host out of packets from the namespace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/ipv4.hpp"
#include "network/ipv6.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::network {

// In their subnet and prefix; as slirp4netns has them, and pasta is told to.
inline constexpr uint16_t kHelperGateway = 2;
inline constexpr uint16_t kHelperNameserver = 3;
inline constexpr uint16_t kHelperInside = 100;
inline constexpr uint16_t kHelperInside6 = 0x100;

struct Host {
  Subnet subnet;                 ///< that is free
  std::optional<Prefix> prefix;  ///< that is free; none where no default route of IPv6 leads away
  std::string address;           ///< of the interface of its default route; empty: none
};
/// Of the network namespace that this process is in; the subnet overlaps none of `taken` either.
/// Errors: unsupported (no subnet is free), io.
Result<Host> look_at_host(std::vector<Subnet> taken = {});

struct HelperCall {
  std::string program;
  std::string name;  ///< of its files in the directory of the leases
  Subnet subnet;
  std::vector<Published> ports;
  std::string interface = "eth0";
  std::string mac{};               ///< of the interface; empty: any
  bool stays = false;              ///< its socket stays, and it ends with its parent
  std::optional<Prefix> prefix{};  ///< for pasta; none: IPv4 alone
};

/// Errors: io with its own words, interrupted.
Result<ProcessName> start_pasta(const Leases& leases, const HelperCall& call, const sys::Fd& space);
/// The same, and busy (a port). Dropped, it is killed.
Result<sys::Process> start_slirp(const Leases& leases, const HelperCall& call,
                                 const sys::Fd& space);

/// The name of the socket of slirp4netns in the directory of the leases.
std::string slirp_socket(const std::string& name);

/// One call of slirp4netns over its socket, and its answer. Errors: io, not_found (it does not
/// run), interrupted. Source: slirp4netns(1) "API SOCKET"
Result<std::string> ask_slirp(const std::string& socket_path, const std::string& call);
/// Errors: busy with its own words, and the above.
Result<void> publish_by_slirp(const std::string& socket_path, const Published& port,
                              uint16_t inside);

}  // namespace berth::network
