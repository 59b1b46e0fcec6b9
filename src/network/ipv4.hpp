// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::network {

/// An IPv4 address in host byte order: 10.0.0.1 is 0x0a000001.
using Ipv4 = uint32_t;

std::optional<Ipv4> parse_ipv4(std::string_view text);
std::string text_of(Ipv4 address);
/// The four bytes in network order.
std::string bytes_of(Ipv4 address);
/// From four bytes in network order.
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
/// count. The same input gives the same subnet, another `turn` starts elsewhere. 65,533 addresses
/// for containers, if possible.
std::optional<Subnet> choose_subnet(const std::vector<Subnet>& taken, uint32_t turn);
/// The same with 253 addresses, for user-mode networks: their well-known 10.0.2.0/24, if it is
/// free.
std::optional<Subnet> choose_small_subnet(const std::vector<Subnet>& taken);

/// "10.1.0.0/16"; bits beyond the prefix are cleared. Nothing for other text.
std::optional<Subnet> parse_subnet(std::string_view text);

/// The same as choose_subnet() for a named network, from a separate range, so that unused networks
/// of either kind do not collide: 4,093 addresses.
std::optional<Subnet> choose_named_subnet(const std::vector<Subnet>& taken);

/// The lowest address of `range`, a part of `subnet`, except the first two and the last of `subnet`
/// and those in `taken`.
std::optional<Ipv4> choose_address(const Subnet& subnet, const Subnet& range,
                                   const std::vector<Ipv4>& taken);

}  // namespace berth::network
