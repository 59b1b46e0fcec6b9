// SPDX-License-Identifier: Apache-2.0
#include "network/ipv6.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace berth::network {
namespace {

constexpr size_t kSize = 16;
constexpr uint8_t kPrivateLength = 64;
constexpr unsigned kMostPrefixes = 256;  // that are tried

}  // namespace

std::optional<std::string> parse_ipv6(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN || text.find('\0') != text.npos) return std::nullopt;
  std::string bytes(kSize, '\0');
  if (inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

std::string text_of_ipv6(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.size() != kSize) return "";
  return inet_ntop(AF_INET6, bytes.data(), text.data(), text.size()) ? text.data() : "";
}

std::optional<std::string_view> mapped_ipv4(std::string_view bytes) {
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (bytes.size() != kSize || !bytes.starts_with(kMapped)) return std::nullopt;
  return bytes.substr(kMapped.size());
}

bool is_ipv6(std::string_view address) {
  return address.find(':') != address.npos;
}

std::string with_port(const std::string& address, uint16_t port) {
  return (is_ipv6(address) ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

bool Prefix::contains(std::string_view address) const {
  if (base.size() != kSize || address.size() != kSize) return false;
  for (unsigned bit = 0; bit < length; ++bit) {
    unsigned differs = static_cast<unsigned char>(base[bit / 8] ^ address[bit / 8]);
    if ((differs >> (7 - bit % 8)) & 1) return false;
  }
  return true;
}

std::optional<Prefix> choose_prefix(const std::vector<Prefix>& taken) {
  for (unsigned number = 0; number < kMostPrefixes; ++number) {
    Prefix prefix{std::string(kSize, '\0'), kPrivateLength};
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
  bytes[kSize - 2] = static_cast<char>(host >> 8);
  bytes[kSize - 1] = static_cast<char>(host & 0xff);
  return bytes;
}

}  // namespace berth::network
