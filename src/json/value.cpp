// SPDX-License-Identifier: Apache-2.0
#include "json/value.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

namespace berth::json {
namespace {

void append(std::string& out, const Value& value, int indent, int level);

void new_line(std::string& out, int indent, int level) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
}

void append_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  out += text;
}

// The length of the UTF-8 sequence that starts at text[at], or 0 when it is malformed.
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

/// Stands in a JSON string as it is; nearly all text does.
bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t plain = i;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text, i, plain - i);
    i = plain;
    if (i == text.size()) break;
    char c = text[i];
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr std::string_view kShort = "btn\0fr";
      bool is_short = byte >= 8 && byte <= 13 && byte != 11;
      char code[8];
      if (is_short) {
        out += '\\';
        out += kShort[byte - 8];
      } else {
        std::snprintf(code, sizeof code, "\\u%04x", byte);
        out += code;
      }
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

void append_array(std::string& out, const Array& array, int indent, int level) {
  out += '[';
  for (size_t i = 0; i < array.size(); ++i) {
    if (i != 0) out += ',';
    new_line(out, indent, level + 1);
    append(out, array[i], indent, level + 1);
  }
  if (!array.empty()) new_line(out, indent, level);
  out += ']';
}

void append_object(std::string& out, const Object& object, int indent, int level) {
  out += '{';
  for (size_t i = 0; i < object.size(); ++i) {
    if (i != 0) out += ',';
    new_line(out, indent, level + 1);
    append_escaped(out, object[i].first);
    out += indent == 0 ? ":" : ": ";
    append(out, object[i].second, indent, level + 1);
  }
  if (!object.empty()) new_line(out, indent, level);
  out += '}';
}

void append(std::string& out, const Value& value, int indent, int level) {
  struct Visitor {
    std::string& out;
    int indent;
    int level;
    void operator()(std::nullptr_t) const { out += "null"; }
    void operator()(bool b) const { out += b ? "true" : "false"; }
    void operator()(int64_t n) const { out += std::to_string(n); }
    void operator()(uint64_t n) const { out += std::to_string(n); }
    void operator()(double n) const { append_double(out, n); }
    void operator()(const std::string& s) const { append_escaped(out, s); }
    void operator()(const Array& a) const { append_array(out, a, indent, level); }
    void operator()(const Object& o) const { append_object(out, o, indent, level); }
  };
  std::visit(Visitor{out, indent, level}, value.storage());
}

}  // namespace

Value::Value(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    storage_ = static_cast<int64_t>(value);
  } else {
    storage_ = value;
  }
}

const Value* Value::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const auto& [key, value] : *members) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Value::set(std::string_view name, Value value) {
  if (object() == nullptr) storage_ = Object{};
  auto& members = *get_if<Object>();
  for (auto& [key, old] : members) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  members.emplace_back(std::string(name), std::move(value));
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "a number", "a number",
                                         "a number", "a string",  "an array", "an object"};
  return kNames[storage_.index()];
}

std::string dump(const Value& value, int indent) {
  std::string out;
  append(out, value, indent, 0);
  if (indent != 0) out += '\n';
  return out;
}

}  // namespace berth::json
