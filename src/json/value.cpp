// SPDX-License-Identifier: Apache-2.0
#include "json/value.hpp"

#include <limits>

#include "json/text.hpp"

namespace berth::json {
namespace {

void append(std::string& out, const Value& value, int indent, int level);

void new_line(std::string& out, int indent, int level) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
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
    append_string(out, object[i].first);
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
    void operator()(double n) const { append_number(out, n); }
    void operator()(const std::string& s) const { append_string(out, s); }
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

void append_compact(std::string& out, const Value& value) {
  append(out, value, 0, 0);
}

std::string dump(const Value& value, int indent) {
  std::string out;
  append(out, value, indent, 0);
  if (indent != 0) out += '\n';
  return out;
}

}  // namespace berth::json
