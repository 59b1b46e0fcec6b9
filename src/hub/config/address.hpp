// SPDX-License-Identifier: Apache-2.0
// IP addresses and networks. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::hub {

/// An IPv6 address; an IPv4 address is kept in its mapped form, ::ffff:a.b.c.d.
struct Address {
  std::array<uint8_t, 16> bytes{};
  auto operator<=>(const Address&) const = default;
};

/// "10.1.2.3", "fd00::1"; nothing for other strings, including addresses with a zone ("%eth0").
std::optional<Address> parse_address(std::string_view text);

/// 127.0.0.0/8 and ::1.
bool is_loopback(const Address& address);

/// The range from which a single machine can choose its addresses: for IPv6 the network of 64 bits,
/// for IPv4 the address itself.  Source: RFC 4291 section 2.5.1
Address neighbourhood(const Address& address);

/// All addresses that share the first `bits` bits with `first`; for IPv4 networks `bits` includes
/// the 96 bits of the mapping.
struct Network {
  Address first;
  unsigned bits = 128;
  bool contains(const Address& address) const;
};

/// "10.1.0.0/16", "fd00::/8", or a single address.
/// Errors: usage (not of this form, an invalid prefix length, a bit set after the prefix).
Result<Network> parse_network(std::string_view text);

/// The address on which a server listens: "127.0.0.1:5050", "[::1]:5050"; port 0 stands for any
/// free port.
struct Endpoint {
  std::string host;  ///< without brackets
  uint16_t port = 0;
  bool loopback = false;
};
/// Errors: usage (not an address with a port; host names are not resolved).
Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace berth::hub
