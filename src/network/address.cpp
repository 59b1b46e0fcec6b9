// SPDX-License-Identifier: Apache-2.0
#include "network/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <unordered_set>

#include "base/text.hpp"

namespace berth::network {
namespace {

constexpr Ipv4 address(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}

bool is_free(const Subnet& subnet, const std::vector<Subnet>& taken) {
  return std::ranges::none_of(
      taken, [&](const Subnet& one) { return one.prefix_length != 0 && one.overlaps(subnet); });
}

constexpr size_t kIpv6Bytes = 16;
constexpr uint8_t kPrivateLength = 64;
constexpr unsigned kMostPrefixes = 256;  // how many prefixes are tried
constexpr size_t kMacBytes = 6;

/// `digits`: two per byte.
std::optional<std::string> bytes_of_digits(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 2 <= digits.size(); i += 2) {
    unsigned char byte = 0;
    const char* end = digits.data() + i + 2;
    auto [at, error] = std::from_chars(digits.data() + i, end, byte, 16);
    if (error != std::errc() || at != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// Groups of digits with equal sizes and the same separator.
std::optional<std::string> bytes_of_text(std::string_view text) {
  struct Form {
    char separator;
    size_t group;
  };
  for (Form form : {Form{':', 2}, Form{'-', 2}, Form{'.', 4}}) {
    std::string digits;
    bool fits = true;
    for (std::string_view part : split(text, form.separator)) {
      fits = fits && part.size() == form.group;
      digits += part;
    }
    if (fits && digits.size() == 2 * kMacBytes) return bytes_of_digits(digits);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Ipv4> parse_ipv4(std::string_view text) {
  auto parts = split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  Ipv4 value = 0;
  for (std::string_view part : parts) {
    auto number = parse_u64(part);
    // Some parsers take a leading zero for octal, others for decimal.
    if (!number || *number > 255 || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    value = value << 8 | static_cast<Ipv4>(*number);
  }
  return value;
}

std::string text_of(Ipv4 address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += std::to_string(address >> shift & 255);
    if (shift > 0) text += '.';
  }
  return text;
}

std::string bytes_of(Ipv4 address) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(address >> shift & 255);
  return bytes;
}

std::optional<Ipv4> from_bytes(std::string_view bytes) {
  if (bytes.size() != 4) return std::nullopt;
  Ipv4 value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::optional<Subnet> choose_subnet(const std::vector<Subnet>& taken, uint32_t turn) {
  // Candidates are in the middle of 10/8 and 172.16/12, away from Docker's 172.17 and podman's
  // 10.88.
  std::vector<Subnet> candidates;
  for (unsigned b = 96; b < 128; ++b) candidates.push_back({address(10, b, 0, 0), 16});
  for (unsigned b = 22; b < 32; ++b) candidates.push_back({address(172, b, 0, 0), 16});
  std::rotate(candidates.begin(),
              candidates.begin() + static_cast<std::ptrdiff_t>(turn % candidates.size()),
              candidates.end());
  for (unsigned c = 64; c < 256; ++c) candidates.push_back({address(192, 168, c, 0), 24});
  for (const Subnet& subnet : candidates) {
    if (is_free(subnet, taken)) return subnet;
  }
  return std::nullopt;
}

std::optional<Subnet> choose_small_subnet(const std::vector<Subnet>& taken) {
  Subnet known{address(10, 0, 2, 0), 24};
  if (is_free(known, taken)) return known;
  auto large = choose_subnet(taken, 0);
  if (large) large->prefix_length = 24;
  return large;
}

std::optional<Subnet> parse_subnet(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  auto address = parse_ipv4(text.substr(0, slash));
  auto length = parse_u64(text.substr(slash + 1));
  if (!address || !length || *length > 32) return std::nullopt;
  Subnet subnet{0, static_cast<uint8_t>(*length)};
  subnet.base = *address & subnet.mask();
  return subnet;
}

std::optional<Subnet> choose_named_subnet(const std::vector<Subnet>& taken) {
  constexpr Ipv4 kStep = 1U << 12;
  for (Ipv4 base = address(10, 128, 0, 0); base < address(10, 192, 0, 0); base += kStep) {
    Subnet subnet{base, 20};
    if (is_free(subnet, taken)) return subnet;
  }
  return std::nullopt;
}

std::optional<Ipv4> choose_address(const Subnet& subnet, const Subnet& range,
                                   const std::vector<Ipv4>& taken) {
  std::unordered_set<Ipv4> used(taken.begin(), taken.end());
  Ipv4 first = std::max(subnet.base + 2, range.base);
  Ipv4 last = std::min(subnet.last() - 1, range.last());
  for (Ipv4 one = first; one <= last; ++one) {
    if (!used.contains(one)) return one;
  }
  return std::nullopt;
}

std::optional<std::string> parse_ipv6(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN || text.find('\0') != text.npos) return std::nullopt;
  std::string bytes(kIpv6Bytes, '\0');
  if (inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

std::string text_of_ipv6(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.size() != kIpv6Bytes) return "";
  return inet_ntop(AF_INET6, bytes.data(), text.data(), text.size()) ? text.data() : "";
}

std::optional<std::string_view> mapped_ipv4(std::string_view bytes) {
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (bytes.size() != kIpv6Bytes || !bytes.starts_with(kMapped)) return std::nullopt;
  return bytes.substr(kMapped.size());
}

bool is_ipv6(std::string_view address) {
  return address.find(':') != address.npos;
}

std::string with_port(const std::string& address, uint16_t port) {
  return (is_ipv6(address) ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

bool Prefix::contains(std::string_view address) const {
  if (base.size() != kIpv6Bytes || address.size() != kIpv6Bytes) return false;
  for (unsigned bit = 0; bit < length; ++bit) {
    unsigned differs = static_cast<unsigned char>(base[bit / 8] ^ address[bit / 8]);
    if ((differs >> (7 - bit % 8)) & 1) return false;
  }
  return true;
}

std::optional<Prefix> choose_prefix(const std::vector<Prefix>& taken) {
  for (unsigned number = 0; number < kMostPrefixes; ++number) {
    Prefix prefix{std::string(kIpv6Bytes, '\0'), kPrivateLength};
    prefix.base[0] = '\xfd';
    prefix.base[7] = static_cast<char>(number);
    bool is_free = std::ranges::none_of(taken, [&](const Prefix& one) {
      return one.length != 0 && (one.contains(prefix.base) || prefix.contains(one.base));
    });
    if (is_free) return prefix;
  }
  return std::nullopt;
}

std::string address_in(const Prefix& prefix, uint16_t host) {
  std::string bytes = prefix.base;
  bytes[kIpv6Bytes - 2] = static_cast<char>(host >> 8);
  bytes[kIpv6Bytes - 1] = static_cast<char>(host & 0xff);
  return bytes;
}

Result<std::string> parse_mac(std::string_view text) {
  auto bytes = bytes_of_text(text);
  if (!bytes) {
    return make_error(Kind::usage, quote(text.substr(0, 64)) +
                                       " is not a valid mac address: expected six bytes, such as "
                                       "02:42:ac:11:00:09");
  }
  bool is_group = (static_cast<unsigned char>(bytes->front()) & 1U) != 0;
  bool is_zero = std::ranges::all_of(*bytes, [](char c) { return c == 0; });
  if (!is_group && !is_zero) return std::move(*bytes);
  return make_error(Kind::usage,
                    quote(text) + " is not a valid mac address of an interface: it is " +
                        (is_group ? "one of a group, as its first byte is odd" : "that of nobody"));
}

std::string mac_text(std::string_view bytes) {
  const std::string digits = to_hex(bytes);
  std::string text;
  for (size_t i = 0; i < digits.size(); i += 2) text += (i > 0 ? ":" : "") + digits.substr(i, 2);
  return text;
}

std::string mac_of(Ipv4 address) {
  return std::string("\x02\xbe", 2) + bytes_of(address);
}

}  // namespace berth::network
