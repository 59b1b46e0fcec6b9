// SPDX-License-Identifier: Apache-2.0
#include "network/ipv4.hpp"

#include <algorithm>
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
  // From the middle of 10/8 and 172.16/12, away from Docker's 172.17 and podman's 10.88.
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

}  // namespace berth::network
