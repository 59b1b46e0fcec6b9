// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "yaml/read.hpp"

namespace berth::yaml {
namespace {

bool is_plain_key(std::string_view key) {
  // A plain word, unless YAML 1.1 takes it for a boolean or null.
  static constexpr std::string_view kOther[] = {"y",   "n",    "yes",   "no",  "on",
                                                "off", "true", "false", "null"};
  if (key.empty() || std::ranges::find(kOther, key) != std::end(kOther)) {
    return false;
  }
  return std::ranges::all_of(
      key, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

/// A JSON string in which the characters that YAML does not allow unescaped are escaped too: DEL
/// and C1 controls, line and paragraph separators (line breaks in YAML 1.1), byte order marks and
/// noncharacters.
std::string double_quote(const std::string& text) {
  constexpr std::string_view kThree[] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf",
                                         "\xef\xbf\xbe", "\xef\xbf\xbf"};
  constexpr std::string_view kNames[] = {"\\u2028", "\\u2029", "\\ufeff", "\\ufffe", "\\uffff"};
  std::string json = json::dump(json::Value(text)), out;
  for (size_t i = 0; i < json.size(); ++i) {
    auto byte = static_cast<unsigned char>(json[i]);
    auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    if (byte == 0x7f || (byte == 0xc2 && next < 0xa0)) {
      out += "\\u00" + to_hex(byte == 0x7f ? std::string_view("\x7f") : json.substr(i + 1, 1));
      i += byte == 0x7f ? 0 : 1;
      continue;
    }
    const auto* special = std::ranges::find(kThree, json.substr(i, 3));
    if (special != std::end(kThree)) {
      out += kNames[special - std::begin(kThree)];
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

/// JSON's scalars, [] and {} are valid YAML.
std::string scalar(const json::Value& value) {
  const std::string* text = value.string();
  return text != nullptr ? double_quote(*text) : json::dump(value);
}

bool is_block(const json::Value& value) {
  const auto* object = value.object();
  const auto* array = value.array();
  return (object != nullptr && !object->empty()) || (array != nullptr && !array->empty());
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  void write(const json::Value& value, size_t indent) {
    if (!is_block(value)) {
      out_ += scalar(value) + "\n";
    } else if (const auto* object = value.object()) {
      write_object(*object, indent);
    } else {
      write_array(*value.array(), indent);
    }
  }

 private:
  // The first line of a block begins at the present position: after "- " or at the start of a line.
  void write_object(const json::Object& object, size_t indent) {
    bool first = true;
    for (const auto& [key, value] : object) {
      start_line(first, indent);
      first = false;
      out_ += is_plain_key(key) ? key : double_quote(key);
      out_ += is_block(value) ? ":\n" : ": ";
      if (is_block(value)) out_.append(indent + 2, ' ');
      write(value, indent + 2);
    }
  }
  void write_array(const json::Array& array, size_t indent) {
    bool first = true;
    for (const json::Value& value : array) {
      start_line(first, indent);
      first = false;
      out_ += "- ";
      write(value, indent + 2);
    }
  }
  void start_line(bool first, size_t indent) {
    if (!first) out_.append(indent, ' ');
  }

  std::string out_;
};

}  // namespace

std::string dump(const json::Value& value) {
  Writer writer;
  writer.write(value, 0);
  return writer.take();
}

}  // namespace berth::yaml
