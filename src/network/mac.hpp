// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "network/ipv4.hpp"

/// Ethernet addresses: six bytes in network order, and their text "02:42:ac:11:00:09". Pure.
namespace berth::network {

/// The six bytes of a text in Docker's forms: "02:42:ac:11:00:09", "02-42-ac-11-00-09" or
/// "0242.ac11.0009". Errors: usage (another form; a multicast address or zero, which no interface
/// can have).
Result<std::string> parse_mac(std::string_view text);

std::string mac_text(std::string_view bytes);

/// A locally administered address from an IPv4 address: 02:be and its four bytes.
std::string mac_of(Ipv4 address);

}  // namespace berth::network
