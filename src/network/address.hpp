// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::network {

/// An IPv4 address in host byte order: 10.0.0.1 is 0x0a000001.
using Ipv4 = uint32_t;

std::optional<Ipv4> parse_ipv4(std::string_view text);
std::string text_of(Ipv4 address);
/// The four bytes in network order.
std::string bytes_of(Ipv4 address);
/// The address of four bytes in network order.
std::optional<Ipv4> from_bytes(std::string_view bytes);

struct Subnet {
  Ipv4 base = 0;
  uint8_t prefix_length = 0;
  Ipv4 mask() const { return prefix_length == 0 ? 0 : ~Ipv4{0} << (32 - prefix_length); }
  Ipv4 last() const { return base | ~mask(); }  ///< the broadcast address
  bool contains(Ipv4 address) const { return (address & mask()) == base; }
  bool overlaps(const Subnet& other) const { return contains(other.base) || other.contains(base); }
  std::string text() const { return text_of(base) + "/" + std::to_string(prefix_length); }
  bool operator==(const Subnet&) const = default;
};

/// A private subnet that does not overlap `taken`, the host's routes; a default route (/0) does not
/// count. The same input gives the same subnet; another `turn` starts the search elsewhere. The
/// subnet has 65,533 addresses for containers, if possible.
std::optional<Subnet> choose_subnet(const std::vector<Subnet>& taken, uint32_t turn);
/// As choose_subnet(), for user-mode networks, with 253 addresses: the well-known 10.0.2.0/24 of
/// these networks, if it is free.
std::optional<Subnet> choose_small_subnet(const std::vector<Subnet>& taken);

/// "10.1.0.0/16"; bits beyond the prefix are cleared. Nothing for other strings.
std::optional<Subnet> parse_subnet(std::string_view text);

/// The same as choose_subnet() for a named network, with 4,093 addresses. From a range of its own:
/// a network without containers has no route, so `taken` may lack it.
std::optional<Subnet> choose_named_subnet(const std::vector<Subnet>& taken);

/// The lowest address of `range`, a part of `subnet`, except the first two and the last of `subnet`
/// and those in `taken`.
std::optional<Ipv4> choose_address(const Subnet& subnet, const Subnet& range,
                                   const std::vector<Ipv4>& taken);

// IPv6 addresses, as 16 bytes in network order.

/// "fd00::1"; nothing for other strings, nor for addresses with a zone ("%eth0").
std::optional<std::string> parse_ipv6(std::string_view text);

/// The short form of 16 bytes. Source: RFC 5952
std::string text_of_ipv6(std::string_view bytes);

/// The four bytes of the IPv4 address in ::ffff:10.0.0.1; nothing for other addresses. Source: RFC
/// 4291 section 2.5.5.2
std::optional<std::string_view> mapped_ipv4(std::string_view bytes);

/// Whether `address` is an IPv6 address.
bool is_ipv6(std::string_view address);

/// "10.0.0.1:80", "[::1]:80".
std::string with_port(const std::string& address, uint16_t port);

struct Prefix {
  std::string base;  ///< 16 bytes
  uint8_t length = 0;
  bool contains(std::string_view address) const;
};

/// A private prefix of 64 bits that does not overlap `taken`, the host's routes; a default route
/// (/0) does not count. Slirp4netns's well-known fd00::/64, if it is free. Source: RFC 4193
std::optional<Prefix> choose_prefix(const std::vector<Prefix>& taken);

/// The address of `prefix` with the number `host`.
std::string address_in(const Prefix& prefix, uint16_t host);

// Ethernet addresses: six bytes in network order, and as strings, "02:42:ac:11:00:09". Pure.

/// The six bytes of a string in one of Docker's forms: "02:42:ac:11:00:09", "02-42-ac-11-00-09" or
/// "0242.ac11.0009". Errors: usage (not of this form; a multicast address or zero, which no
/// interface can have).
Result<std::string> parse_mac(std::string_view text);

std::string mac_text(std::string_view bytes);

/// A locally administered MAC address: 02:be and the four bytes of an IPv4 address.
std::string mac_of(Ipv4 address);

}  // namespace berth::network
