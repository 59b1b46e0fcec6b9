// SPDX-License-Identifier: Apache-2.0
#include "network/mac.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace berth::network {
namespace {

constexpr size_t kBytes = 6;

/// `digits`: two for a byte.
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
    if (fits && digits.size() == 2 * kBytes) return bytes_of_digits(digits);
  }
  return std::nullopt;
}

}  // namespace

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
