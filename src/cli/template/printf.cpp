// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "cli/template/go_text.hpp"
#include "cli/template/item.hpp"

// Go's fmt.Sprintf for JSON's types. A verb that does not fit its argument prints the same as in
// Go, "%!d(string=x)", which shows what is wrong in the template.
namespace berth::cli::syntax {
namespace {

struct Directive {
  bool minus = false, plus = false, sharp = false, space = false, zero = false;
  std::optional<size_t> width, precision;
  char verb = 0;
};

constexpr size_t kMaxWidth = 10'000;

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string first_characters(std::string_view text, size_t count) {
  size_t end = 0;
  while (end < text.size() && count > 0) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    --count;
  }
  return std::string(text.substr(0, end));
}

std::string go_type(const json::Value& value) {
  if (value.string() != nullptr) return "string";
  if (value.get_if<bool>() != nullptr) return "bool";
  if (value.get_if<double>() != nullptr) return "float64";
  if (value.array() != nullptr) return "[]interface {}";
  if (value.object() != nullptr) return "map[string]interface {}";
  return "int";
}

std::string hex_of(std::string_view text, bool upper) {
  const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    out += {digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

/// Digits of `value` in base 2, 8, 10 or 16.
std::string digits_of(uint64_t value, unsigned base, bool upper) {
  const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[value % base]);
    value /= base;
  } while (value != 0);
  return out;
}

std::optional<std::string> integer_text(const Directive& d, bool negative, uint64_t magnitude) {
  unsigned base = d.verb == 'd' || d.verb == 'v'   ? 10
                  : d.verb == 'x' || d.verb == 'X' ? 16
                  : d.verb == 'o'                  ? 8
                  : d.verb == 'b'                  ? 2
                                                   : 0;
  if (base == 0) return std::nullopt;
  std::string digits = digits_of(magnitude, base, d.verb == 'X');
  if (d.precision && digits.size() < *d.precision)
    digits.insert(0, *d.precision - digits.size(), '0');
  if (d.sharp && base != 10) {
    digits.insert(0, d.verb == 'X' ? "0X" : d.verb == 'x' ? "0x" : d.verb == 'b' ? "0b" : "0");
  }
  std::string sign = negative ? "-" : d.plus ? "+" : d.space ? " " : "";
  if (d.zero && !d.minus && !d.precision && d.width && sign.size() + digits.size() < *d.width) {
    digits.insert(0, *d.width - sign.size() - digits.size(), '0');
  }
  return sign + digits;
}

std::optional<std::string> real_text(const Directive& d, double value) {
  if (d.verb == 'v' && !d.precision) return json::dump(json::Value(value));
  char verb = d.verb == 'v' ? 'g' : d.verb;
  if (std::string_view("eEfFgG").find(verb) == std::string_view::npos) return std::nullopt;
  std::string format = std::string("%") + (d.plus ? "+" : d.space ? " " : "") + "*.*" + verb;
  std::array<char, 512> buffer;
  int precision = static_cast<int>(std::min<size_t>(d.precision.value_or(6), 100));
  int length = std::snprintf(buffer.data(), buffer.size(), format.c_str(), 0, precision, value);
  if (length < 0) return std::nullopt;
  std::string text(buffer.data(), std::min(static_cast<size_t>(length), buffer.size() - 1));
  if (d.zero && !d.minus && d.width && text.size() < *d.width) {
    size_t sign = text.find_first_of("+-") == 0 ? 1 : 0;
    text.insert(sign, *d.width - text.size(), '0');
  }
  return text;
}

std::optional<std::string> string_text(const Directive& d, const std::string& value) {
  std::string text = d.precision ? first_characters(value, *d.precision) : value;
  switch (d.verb) {
    case 's':
    case 'v':
      return d.sharp && d.verb == 'v' ? quote_as_go(text) : text;
    case 'q':
      return quote_as_go(text);
    case 'x':
    case 'X':
      return hex_of(text, d.verb == 'X');
    default:
      return std::nullopt;
  }
}

/// Nothing if the verb does not fit the argument.
std::optional<std::string> argument_text(const Directive& d, const Item& item) {
  const json::Value& value = *item;
  if (const std::string* text = value.string()) return string_text(d, *text);
  if (const auto* flag = value.get_if<bool>()) {
    if (d.verb != 't' && d.verb != 'v') return std::nullopt;
    return *flag ? "true" : "false";
  }
  if (const auto* number = value.get_if<int64_t>()) {
    bool negative = *number < 0;
    uint64_t magnitude =
        negative ? 0 - static_cast<uint64_t>(*number) : static_cast<uint64_t>(*number);
    if (d.verb == 'c' || d.verb == 'q') {
      if (negative || magnitude > 0x7F) return std::nullopt;
      std::string character(1, static_cast<char>(magnitude));
      return d.verb == 'q' ? "'" + character + "'" : character;
    }
    return integer_text(d, negative, magnitude);
  }
  if (const auto* number = value.get_if<uint64_t>()) return integer_text(d, false, *number);
  if (const auto* number = value.get_if<double>()) return real_text(d, *number);
  if (d.verb == 's' || d.verb == 'v') return printed(item);
  if (d.verb == 'q' && value.array() != nullptr) {  // ["a" "b"]
    std::string text = "[";
    for (const json::Value& one : *value.array()) {
      if (one.string() == nullptr) return std::nullopt;
      text += (text.size() > 1 ? " " : "") + quote_as_go(*one.string());
    }
    return text + "]";
  }
  return std::nullopt;
}

std::string padded(const Directive& d, std::string text) {
  size_t length = characters(text);
  if (!d.width || length >= *d.width) return text;
  size_t missing = *d.width - length;
  // Go pads strings with zeroes too if the flag '0' is given.
  char filler = d.zero && !d.minus ? '0' : ' ';
  if (d.minus) return text + std::string(missing, ' ');
  return std::string(missing, filler) + text;
}

class Formatter {
 public:
  Formatter(std::string_view format, const std::vector<Item>& arguments, Place place)
      : format_(format), arguments_(arguments), place_(place) {}

  Result<std::string> run() {
    while (at_ < format_.size()) {
      if (out_.size() > kMaxOutputBytes) return error_at(place_, "'printf' makes more than 16 MiB");
      if (format_[at_] != '%') {
        out_ += format_[at_++];
        continue;
      }
      ++at_;
      TRY(directive());
    }
    if (next_ < arguments_.size()) {
      out_ += "%!(EXTRA ";
      for (size_t i = next_; i < arguments_.size(); ++i) {
        out_ += (i > next_ ? ", " : "") + described(arguments_[i]);
      }
      out_ += ")";
    }
    return std::move(out_);
  }

 private:
  char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  static std::string described(const Item& item) {
    if (item->is_null()) return "<nil>";
    return go_type(*item) + "=" + printed(item);
  }

  /// A width or precision: "12" or "*". Nothing if there is neither.
  Result<std::optional<size_t>> number(Directive& d) {
    if (peek() == '*') {
      ++at_;
      const auto* value =
          next_ < arguments_.size() ? arguments_[next_]->get_if<int64_t>() : nullptr;
      if (value == nullptr) return error_at(place_, "'printf' has no whole number for '*'");
      ++next_;
      if (*value < 0) d.minus = true;
      uint64_t size =
          *value < 0 ? 0 - static_cast<uint64_t>(*value) : static_cast<uint64_t>(*value);
      if (size > kMaxWidth) return error_at(place_, "'printf' pads to more than 10000");
      return std::optional<size_t>(size);
    }
    std::optional<size_t> size;
    while (peek() >= '0' && peek() <= '9') {
      size = size.value_or(0) * 10 + static_cast<size_t>(peek() - '0');
      if (*size > kMaxWidth) return error_at(place_, "'printf' pads to more than 10000");
      ++at_;
    }
    return size;
  }

  Result<void> directive() {
    Directive d;
    for (bool flag = true; flag;) {
      switch (peek()) {
        case '-':
          d.minus = true;
          break;
        case '+':
          d.plus = true;
          break;
        case '#':
          d.sharp = true;
          break;
        case ' ':
          d.space = true;
          break;
        case '0':
          d.zero = true;
          break;
        default:
          flag = false;
      }
      if (flag) ++at_;
    }
    d.width = TRY(number(d));
    if (peek() == '.') {
      ++at_;
      d.precision = TRY(number(d));
      if (!d.precision) d.precision = 0;
    }
    if (at_ >= format_.size()) {
      out_ += "%!(NOVERB)";
      return {};
    }
    d.verb = format_[at_++];
    if (d.verb == '%') {
      out_ += '%';
      return {};
    }
    if (next_ >= arguments_.size()) {
      out_ += std::string("%!") + d.verb + "(MISSING)";
      return {};
    }
    const Item& item = arguments_[next_++];
    auto text = argument_text(d, item);
    if (text) {
      out_ += padded(d, std::move(*text));
    } else {
      out_ += std::string("%!") + d.verb + "(" + described(item) + ")";
    }
    return {};
  }

  std::string_view format_;
  const std::vector<Item>& arguments_;
  Place place_;
  size_t at_ = 0;
  size_t next_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> format_text(std::string_view format, const std::vector<Item>& arguments,
                                Place place) {
  return Formatter(format, arguments, place).run();
}

}  // namespace berth::cli::syntax
