// SPDX-License-Identifier: Apache-2.0
#include "hub/config/address.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::hub {
namespace {

constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr unsigned kMappedBits = 96;

bool is_ipv4(const Address& address) {
  return std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin());
}

/// The bits of byte `index` that a network of `bits` bits fixes.
uint8_t mask_of(unsigned bits, size_t index) {
  unsigned before = static_cast<unsigned>(index) * 8;
  if (bits >= before + 8) return 0xff;
  if (bits <= before) return 0;
  return static_cast<uint8_t>(0xff << (8 - (bits - before)));
}

Error no_network(std::string_view text, std::string_view why) {
  return make_error(Kind::usage, "network " + quote(text.substr(0, 100)) + ": " + std::string(why));
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN) return std::nullopt;
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) return std::nullopt;
  Address address;
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  std::ranges::copy(kMapped, address.bytes.begin());
  if (inet_pton(AF_INET, copy.c_str(), &address.bytes[kMapped.size()]) == 1) return address;
  return std::nullopt;
}

bool is_loopback(const Address& address) {
  static const Network kFour = {*parse_address("127.0.0.0"), kMappedBits + 8};
  static const Address kSix = *parse_address("::1");
  return address == kSix || kFour.contains(address);
}

Address neighbourhood(const Address& address) {
  constexpr size_t kNetworkBytes = 8;
  Address out = address;
  if (!is_ipv4(address)) std::fill(out.bytes.begin() + kNetworkBytes, out.bytes.end(), uint8_t{0});
  return out;
}

bool Network::contains(const Address& address) const {
  for (size_t i = 0; i < address.bytes.size(); ++i) {
    if (((address.bytes[i] ^ first.bytes[i]) & mask_of(bits, i)) != 0) return false;
  }
  return true;
}

Result<Network> parse_network(std::string_view text) {
  size_t slash = text.find('/');
  auto first = parse_address(text.substr(0, slash));
  if (!first) return no_network(text, "expected an address and a length, as 10.1.0.0/16");
  Network network{*first, 128};
  if (slash == std::string_view::npos) return network;
  unsigned more = is_ipv4(*first) ? kMappedBits : 0;
  auto bits = parse_u64(text.substr(slash + 1));
  if (!bits || *bits + more > 128) {
    return no_network(text, more != 0 ? "its length is 0 to 32" : "its length is 0 to 128");
  }
  network.bits = static_cast<unsigned>(*bits) + more;
  for (size_t i = 0; i < first->bytes.size(); ++i) {
    if ((first->bytes[i] & ~mask_of(network.bits, i)) != 0) {
      return no_network(text, "its address has bits behind its length");
    }
  }
  return network;
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  auto address = parse_address(host);
  bool six = host.find(':') != std::string_view::npos;
  auto port = parse_u64(colon == text.npos ? std::string_view() : text.substr(colon + 1));
  if (!address || six != brackets || !port || *port > 65535) {
    return make_error(Kind::usage, "listen at " + quote(text.substr(0, 100)) +
                                       ": expected ADDRESS:PORT, as 127.0.0.1:5050 or [::1]:5050");
  }
  return Endpoint{std::string(host), static_cast<uint16_t>(*port), is_loopback(*address)};
}

}  // namespace berth::hub
