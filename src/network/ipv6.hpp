// SPDX-License-Identifier: Apache-2.0
// Addresses of IPv6, as 16 bytes in the order in which they travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::network {

/// "fd00::1"; nothing for other text, zones ("%eth0") among it.
std::optional<std::string> parse_ipv6(std::string_view text);

/// The short form of 16 bytes. Source: RFC 5952
std::string text_of_ipv6(std::string_view bytes);

/// The four bytes of IPv4 in ::ffff:10.0.0.1; nothing where `bytes` are another address. Source:
/// RFC 4291 section 2.5.5.2
std::optional<std::string_view> mapped_ipv4(std::string_view bytes);

/// Whether the text of an address of either version is one of IPv6.
bool is_ipv6(std::string_view address);

/// "10.0.0.1:80", "[::1]:80".
std::string with_port(const std::string& address, uint16_t port);

struct Prefix {
  std::string base;  ///< 16 bytes
  uint8_t length = 0;
  bool contains(std::string_view address) const;
};

/// A private prefix of 64 bits that overlaps none of `taken`, which are the host's routes; a
/// default route (/0) takes nothing. fd00::/64, which people know from slirp4netns, where it is
/// free. Source: RFC 4193
std::optional<Prefix> choose_prefix(const std::vector<Prefix>& taken);

/// The address of `prefix` with the number `host`.
std::string address_in(const Prefix& prefix, uint16_t host);

}  // namespace berth::network
