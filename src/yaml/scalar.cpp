// SPDX-License-Identifier: Apache-2.0
#include "yaml/scalar.hpp"

#include <charconv>

namespace berth::yaml {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<uint64_t> parse_digits(std::string_view digits, int base) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  auto [at, error] = std::from_chars(digits.data(), end, value, base);
  if (digits.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

/// The digits without their sign and base. A leading zero means octal to Go, and CDI files are
/// tested with Go's readers: fileMode: 0666.
std::optional<uint64_t> parse_magnitude(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') {
    switch (text[1]) {
      case 'x':
        return parse_digits(text.substr(2), 16);
      case 'o':
        return parse_digits(text.substr(2), 8);
      case 'b':
        return parse_digits(text.substr(2), 2);
      default:
        return parse_digits(text.substr(1), 8);
    }
  }
  return parse_digits(text, 10);
}

std::optional<json::Value> parse_integer(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  auto value = parse_magnitude(digits);
  if (!value) return std::nullopt;
  if (!negative) return json::Value(*value);
  if (*value > uint64_t{1} << 63) return std::nullopt;
  return json::Value(static_cast<int64_t>(-*value));
}

std::optional<json::Value> parse_null(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return json::Value();
  }
  return std::nullopt;
}

std::optional<json::Value> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return json::Value(true);
  if (text == "false" || text == "False" || text == "FALSE") return json::Value(false);
  return std::nullopt;
}

}  // namespace

json::Value resolve(std::string_view text) {
  if (auto value = parse_null(text)) return *value;
  if (auto value = parse_bool(text)) return *value;
  if (auto value = parse_integer(text)) return *value;
  return text;
}

std::optional<json::Value> resolve_as(std::string_view type, std::string_view text) {
  if (type == "str") return json::Value(text);
  if (type == "int") return parse_integer(text);
  if (type == "bool") return parse_bool(text);
  if (type == "null") return parse_null(text);
  return std::nullopt;
}

}  // namespace berth::yaml
