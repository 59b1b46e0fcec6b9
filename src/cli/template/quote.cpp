// SPDX-License-Identifier: Apache-2.0
#include "cli/template/quote.hpp"

#include <cstdio>

namespace berth::cli {

std::string quote_as_go(std::string_view text) {
  std::string out = "\"";
  constexpr std::string_view kCodes = "\a\b\f\n\r\t\v\\\"";
  constexpr std::string_view kLetters = "abfnrtv\\\"";
  for (char c : text) {
    size_t i = kCodes.find(c);
    if (i != kCodes.npos) {
      out += {'\\', kLetters[i]};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(c));
      out += hex;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace berth::cli
