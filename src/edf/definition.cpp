// SPDX-License-Identifier: Apache-2.0
#include "edf/definition.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "policy/site/fill.hpp"
#include "policy/site/toml.hpp"

namespace berth::edf {
namespace {

using policy::TomlEntry;

/// For a key that is a table: its entries are parsed one by one.
struct Table {};
void fields(auto&, Table&) {}

struct Keys {
  std::vector<std::string> base_environment;
  std::optional<std::string> image;
  std::optional<std::string> workdir;
  std::optional<bool> entrypoint;
  std::optional<bool> writable;
  std::vector<std::string> mounts;
  std::vector<std::string> devices;
  Table env;
  Table annotations;
};
void fields(auto& v, Keys& k) {
  v.optional("base_environment", k.base_environment);
  v.optional("image", k.image);
  v.optional("workdir", k.workdir);
  v.optional("entrypoint", k.entrypoint);
  v.optional("writable", k.writable);
  v.optional("mounts", k.mounts);
  v.optional("devices", k.devices);
  v.optional("env", k.env);
  v.optional("annotations", k.annotations);
  v.strict();
}

class Parser {
 public:
  explicit Parser(std::string_view document) : document_(document) {}
  Result<void> take(const TomlEntry& entry);
  Definition definition;

 private:
  std::string place(uint32_t line) const { return fmt::format("{}:{}", document_, line); }
  Error wrong(const TomlEntry& entry, std::string_view wanted) const;
  Result<void> take_key(TomlEntry entry);
  Result<void> take_variable(const TomlEntry& entry);
  Result<void> take_annotation(const TomlEntry& entry);
  void take_text(std::optional<std::string>& value, uint32_t line, std::optional<Text>& out) const;
  void take_texts(std::vector<std::string>& values, const TomlEntry& entry,
                  std::vector<Text>& out) const;

  std::string_view document_;
};

Error Parser::wrong(const TomlEntry& entry, std::string_view wanted) const {
  return make_error(Kind::usage, fmt::format("{}: {}: expected {}, got {}", place(entry.line),
                                             escape_controls(policy::key_of(entry)), wanted,
                                             entry.value.type_name()));
}

void Parser::take_text(std::optional<std::string>& value, uint32_t line,
                       std::optional<Text>& out) const {
  if (value) out = Text{std::move(*value), place(line)};
}

void Parser::take_texts(std::vector<std::string>& values, const TomlEntry& entry,
                        std::vector<Text>& out) const {
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t line = i < entry.element_lines.size() ? entry.element_lines[i] : entry.line;
    out.push_back({std::move(values[i]), place(line)});
  }
}

Result<void> Parser::take_key(TomlEntry entry) {
  // "A string if there is only one base environment."
  bool one = entry.path[0] == "base_environment" && entry.value.string() != nullptr;
  if (one) entry.value = json::Array{entry.value};
  Keys keys;
  if (auto fault = policy::fill_entry(entry, document_, keys)) return std::move(*fault);
  take_texts(keys.base_environment, entry, definition.bases);
  take_text(keys.image, entry.line, definition.image);
  take_text(keys.workdir, entry.line, definition.workdir);
  if (keys.entrypoint) definition.entrypoint = keys.entrypoint;
  if (keys.writable) definition.writable = keys.writable;
  take_texts(keys.mounts, entry, definition.mounts);
  take_texts(keys.devices, entry, definition.devices);
  return {};
}

Result<void> Parser::take_variable(const TomlEntry& entry) {
  const std::string& name = entry.path[1];
  bool good = entry.path.size() == 2 && !name.empty() &&
              name.find_first_of(std::string_view("=\0", 2)) == std::string::npos;
  if (!good) {
    return make_error(Kind::usage,
                      fmt::format("{}: {}: not the name of an environment variable",
                                  place(entry.line), escape_controls(policy::key_of(entry))));
  }
  const std::string* value = entry.value.string();
  if (value == nullptr) return wrong(entry, "a string");
  definition.variables[name] = {*value, place(entry.line)};
  return {};
}

Result<void> Parser::take_annotation(const TomlEntry& entry) {
  if (entry.value.object() != nullptr) return {};  // a table without entries
  std::string name = join({entry.path.begin() + 1, entry.path.end()}, ".");
  const std::string* text = entry.value.string();
  bool plain = entry.value.get_if<bool>() != nullptr || entry.value.get_if<int64_t>() != nullptr;
  if (text == nullptr && !plain) return wrong(entry, "a string");
  definition.annotations[name] = {text != nullptr ? *text : json::dump(entry.value),
                                  place(entry.line)};
  return {};
}

Result<void> Parser::take(const TomlEntry& entry) {
  bool in_table = entry.path.size() > 1;
  if (in_table && entry.path[0] == "env") return take_variable(entry);
  if (in_table && entry.path[0] == "annotations") return take_annotation(entry);
  return take_key(entry);
}

}  // namespace

Result<Definition> parse(std::string_view text, std::string_view document) {
  Parser parser(document);
  for (const TomlEntry& entry : TRY(policy::parse_toml(text, document))) TRY(parser.take(entry));
  return std::move(parser.definition);
}

}  // namespace berth::edf
