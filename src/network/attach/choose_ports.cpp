// SPDX-License-Identifier: Apache-2.0
#include "network/attach/choose_ports.hpp"

#include <set>
#include <tuple>

#include "base/text.hpp"
#include "network/address.hpp"
#include "sys/file/file.hpp"
#include "sys/net/port.hpp"

namespace berth::network {
namespace {

constexpr unsigned kFirstFree = 49153;
constexpr unsigned kFreePorts = 65536 - kFirstFree;
constexpr const char* kAnyAddress = "0.0.0.0";
constexpr const char* kAnyAddress6 = "::";

/// Used ports, by protocol and port. A port is used at one address or at all addresses.
class Taken {
 public:
  explicit Taken(const std::vector<Lease>& leases) {
    for (const Lease& lease : leases) {
      for (const Published& port : lease.ports) add(port, lease.id);
    }
  }
  void add(const Published& port, const std::string& id) {
    ports_.emplace(port.protocol, port.host_port, port.host_address, id);
  }
  /// The id of the container that uses the port.
  const std::string* holder(const Published& wanted) const {
    auto at = ports_.lower_bound({wanted.protocol, wanted.host_port, "", ""});
    for (; at != ports_.end(); ++at) {
      const auto& [protocol, port, address, id] = *at;
      if (protocol != wanted.protocol || port != wanted.host_port) return nullptr;
      if (meet(address, wanted.host_address)) return &id;
    }
    return nullptr;
  }

 private:
  static bool meet(const std::string& a, const std::string& b) {
    bool of_one_version = is_ipv6(a) == is_ipv6(b);
    const char* any = is_ipv6(a) ? kAnyAddress6 : kAnyAddress;
    return of_one_version && (a == b || a == any || b == any);
  }
  std::set<std::tuple<std::string, unsigned, std::string, std::string>> ports_;
};

/// 4 bytes, or 16 for IPv6.
std::optional<std::string> address_bytes(const std::string& text) {
  if (auto address = parse_ipv4(text)) return bytes_of(*address);
  return parse_ipv6(text);
}

Result<void> check_free(const Published& port, const Taken& taken) {
  std::string name = with_port(port.host_address, port.host_port) + "/" + port.protocol;
  if (const std::string* holder = taken.holder(port)) {
    return make_error(
        Kind::busy,
        "publish " + name + ": container " + quote(holder->substr(0, 12)) + " has this port",
        "another host port, or none for any that is free");
  }
  auto transport = port.protocol == "udp" ? sys::Transport::udp : sys::Transport::tcp;
  auto address = address_bytes(port.host_address);
  if (!address) return make_error(Kind::usage, "publish " + name + ": no address");
  auto tried = sys::try_port(transport, *address, port.host_port, name);
  if (tried.ok()) return tried;
  Error error = std::move(tried).error().with_context("cannot publish a port");
  if (error.kind == Kind::busy) error.hint = "another host port, or none for any that is free";
  if (error.kind == Kind::denied) {
    error.hint = "a host port from 1024 on; or as root: sysctl net.ipv4.ip_unprivileged_port_start";
  }
  if (error.kind == Kind::not_found) error.hint = "an address of this machine, or none for all";
  return error;
}

unsigned random_start() {
  unsigned value = 0;
  for (char c : sys::random_hex(4)) {
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value;
}

/// Takes the first free port of the range of `count` ports from `first` on; the search begins at
/// the `start`th.
Result<void> take_any(Published& port, unsigned first, unsigned count, unsigned start,
                      const Taken& taken) {
  std::optional<Error> last;
  for (unsigned i = 0; i < count; ++i) {
    port.host_port = static_cast<uint16_t>(first + (start + i) % count);
    auto free = check_free(port, taken);
    if (free.ok()) return free;
    if (free.error().kind != Kind::busy) return free;
    last = std::move(free).error();
  }
  return last ? std::move(*last) : make_error(Kind::bug, "publish a port of none");
}

}  // namespace

Result<std::vector<Published>> choose_ports(const std::vector<Publish>& wanted,
                                            const std::vector<Lease>& leases) {
  Taken taken(leases);
  std::vector<Published> settled;
  for (const Publish& one : wanted) {
    bool is_fixed = one.host_first != 0 && one.host_last - one.host_first + 1 == one.count;
    for (unsigned i = 0; i < one.count; ++i) {
      Published port{one.host_address.empty() ? kAnyAddress : one.host_address, 0,
                     static_cast<uint16_t>(one.container_first + i), one.protocol};
      if (is_fixed) {
        port.host_port = static_cast<uint16_t>(one.host_first + i);
        TRY(check_free(port, taken));
      } else if (one.host_first != 0) {
        TRY(take_any(port, one.host_first, one.host_last - one.host_first + 1U, 0, taken));
      } else {
        TRY(take_any(port, kFirstFree, kFreePorts, random_start() % kFreePorts, taken));
      }
      taken.add(port, "this one");
      settled.push_back(std::move(port));
    }
  }
  return settled;
}

}  // namespace berth::network
