// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "yaml/read.hpp"

namespace berth::yaml {
namespace {

bool is_plain_key(std::string_view key) {
  // A word, but none that YAML 1.1 takes for a boolean or null.
  static constexpr std::string_view kOther[] = {"y",   "n",    "yes",   "no",  "on",
                                                "off", "true", "false", "null"};
  if (key.empty() || std::find(std::begin(kOther), std::end(kOther), key) != std::end(kOther)) {
    return false;
  }
  return std::all_of(key.begin(), key.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
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
      out_ += json::dump(value) + "\n";  // JSON's scalars, [] and {} are YAML's
    } else if (const auto* object = value.object()) {
      write_object(*object, indent);
    } else {
      write_array(*value.array(), indent);
    }
  }

 private:
  // The first line of a block stands where the writer is: behind "- " or at the start of a line.
  void write_object(const json::Object& object, size_t indent) {
    bool first = true;
    for (const auto& [key, value] : object) {
      start_line(first, indent);
      first = false;
      out_ += is_plain_key(key) ? key : json::dump(json::Value(key));
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
