// SPDX-License-Identifier: Apache-2.0
#include "json/fields.hpp"
#include "node/file/load.hpp"
#include "policy/site/toml.hpp"

namespace berth::node {
namespace {

std::string toml_value(const json::Value& value);

std::string toml_array(const json::Array& values) {
  std::string out = "[";
  for (const json::Value& value : values) {
    out += (out.size() > 1 ? ", " : "") + toml_value(value);
  }
  return out + "]";
}

std::string toml_value(const json::Value& value) {
  if (const std::string* text = value.string()) return policy::toml_string(*text);
  if (const json::Array* values = value.array()) return toml_array(*values);
  return json::dump(value);  // numbers, true and false are written as in JSON
}

bool is_table(const json::Value& value) {
  return value.object() != nullptr;
}

bool is_list_of_tables(const json::Value& value) {
  const json::Array* values = value.array();
  return values != nullptr && !values->empty() && is_table(values->front());
}

bool is_empty(const json::Value& value) {
  const std::string* text = value.string();
  const json::Array* values = value.array();
  return value.is_null() || (text != nullptr && text->empty()) ||
         (values != nullptr && values->empty());
}

void append_values(const json::Object& object, std::string& out) {
  for (const auto& [name, value] : object) {
    if (!is_table(value) && !is_list_of_tables(value) && !is_empty(value)) {
      out += name + " = " + toml_value(value) + "\n";
    }
  }
}

void append_table(const std::string& header, const json::Value& table, std::string& out) {
  std::string values;
  if (is_table(table)) append_values(*table.object(), values);
  if (!values.empty()) out += "\n" + header + "\n" + values;
}

/// The tables of a profile contain no further tables.
std::string toml_of(const json::Object& object) {
  std::string out;
  append_values(object, out);
  for (const auto& [name, value] : object) {
    append_table("[" + name + "]", value, out);
    if (!is_list_of_tables(value)) continue;
    for (const json::Value& one : *value.array()) append_table("[[" + name + "]]", one, out);
  }
  return out;
}

}  // namespace

std::string write_profile(const Profile& profile, Form form) {
  if (form == Form::json) return json::write(profile, 2) + "\n";
  json::Value value = json::to_value(profile);
  return toml_of(*value.object());
}

}  // namespace berth::node
