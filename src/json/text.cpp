// SPDX-License-Identifier: Apache-2.0
#include "json/text.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace berth::json {
namespace {

// The length of the UTF-8 sequence that begins at text[at], or 0 if the sequence is malformed.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(at);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xC2 && lead < 0xE0 ? 2
                  : (lead & 0xF0) == 0xE0       ? 3
                  : lead >= 0xF0 && lead < 0xF5 ? 4
                                                : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(at + 1) < 0xA0) return 0;  // overlong
  if (lead == 0xED && byte(at + 1) > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && byte(at + 1) < 0x90) return 0;  // overlong
  if (lead == 0xF4 && byte(at + 1) > 0x8F) return 0;  // beyond U+10FFFF
  return length;
}

/// Characters that need no escape in a JSON string. Most strings have only these.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (int c = 0x20; c < 0x7F; ++c) plain[static_cast<size_t>(c)] = c != '"' && c != '\\';
  return plain;
}();

void append_control(std::string& out, unsigned char byte) {
  constexpr char kShort[] = "btn\0fr";
  if (byte >= 8 && byte <= 13 && byte != 11) {
    out += '\\';
    out += kShort[byte - 8U];
    return;
  }
  char code[8];
  std::snprintf(code, sizeof code, "\\u%04x", byte);
  out += code;
}

}  // namespace

size_t find_foreign_byte(std::string_view text) {
  constexpr uint64_t kEach = 0x0101010101010101;
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word = 0;
    if (i + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + i, sizeof word);
      bool ascii = (word & (kEach * 0x80)) == 0;
      // In the subtraction a byte below 0x20 sets its highest bit.
      if (ascii && ((word - kEach * 0x20) & (kEach * 0x80)) == 0) {
        i += sizeof word;
        continue;
      }
    }
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = utf8_length(text, i);
    bool white = byte == '\t' || byte == '\n' || byte == '\r';
    if (length == 0 || (byte < 0x20 && !white)) return i;
    i += length;
  }
  return std::string_view::npos;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t plain = i;
    while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) ++plain;
    out.append(text, i, plain - i);
    i = plain;
    if (i == text.size()) break;
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
      ++i;
    } else if (byte < 0x20 || byte == 0x7F) {
      append_control(out, byte);
      ++i;
    } else if (size_t length = utf8_length(text, i); length != 0) {
      out.append(text, i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

void append_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  out += text;
}

}  // namespace berth::json
