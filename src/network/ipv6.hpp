// SPDX-License-Identifier: Apache-2.0
// IPv6 addresses, as 16 bytes in network order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::network {

/// "fd00::1"; nothing for other text, zones ("%eth0") included.
std::optional<std::string> parse_ipv6(std::string_view text);

/// The short form of 16 bytes. Source: RFC 5952
std::string text_of_ipv6(std::string_view bytes);

/// The four bytes of the IPv4 address in ::ffff:10.0.0.1; nothing for other addresses. Source: RFC
/// 4291 section 2.5.5.2
std::optional<std::string_view> mapped_ipv4(std::string_view bytes);

/// Whether an address text is one of IPv6.
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

}  // namespace berth::network
