// SPDX-License-Identifier: Apache-2.0
#include "bake/bake_document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::bake {

using policy::TomlEntry;

void recipe_fields(auto& v, Recipe& r) {
  v.optional("adopt", r.adopt);
  v.optional("context", r.context);
  v.optional("file", r.file);
  v.optional("target", r.target);
  v.optional("command", r.command);
  v.optional("args", r.args);
  v.optional("labels", r.labels);
  v.optional("priority", r.priority);
  v.optional("nfd", r.nfd);
  v.optional("nfd-tag", r.nfd_tag);
}

void fields(auto& v, CellDocument& c) {
  v.optional("name", c.name);
  recipe_fields(v, c.recipe);
  for (std::string_view axis : axis_names()) v.optional(axis, c.axes[std::string(axis)]);
  v.strict();
}

void fields(auto& v, Document& d) {
  // Optional here, so that a misspelt key is reported before a missing one.
  v.optional("image", d.image);
  v.optional("version", d.version);
  v.optional("builder", d.builder);
  v.optional("name", d.name);
  v.optional("generic", d.generic);
  recipe_fields(v, d.recipe);
  v.optional("platform", d.recipe.platform);
  v.optional("axes", d.axes);
  v.optional("exclude", d.exclude);
  v.optional("only", d.only);
  v.optional("annotations", d.annotations);
  v.optional("cell", d.cells);
  v.strict();
}

namespace {

constexpr size_t kMaxEntries = 20'000;

/// Lists the names of a table instead of filling it.
struct Names {
  std::vector<std::string_view> all;
  template <class T>
  void optional(std::string_view name, T&) {
    all.push_back(name);
  }
  void strict() {}
};

template <class T>
bool has_key(std::string_view name) {
  T table;
  Names names;
  fields(names, table);
  return std::ranges::find(names.all, name) != names.all.end();
}

// "cell[2].name" → 2
std::optional<uint64_t> index(std::string_view path) {
  for (size_t open = path.find('['); open != path.npos; open = path.find('[', open + 1)) {
    size_t end = std::min(path.find(']', open), path.size());
    auto number = parse_u64(path.substr(open + 1, end - open - 1));
    if (number) return number;
  }
  return std::nullopt;
}

uint32_t line_of(const TomlEntry& entry, std::optional<uint64_t> element) {
  bool known = element && *element < entry.element_lines.size();
  return known ? entry.element_lines[*element] : entry.line;
}

// "args['X']" and "cell[2].name" → "args.X", "cell.name"
std::string plain(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '[') {
      if (path[i] != ']' && path[i] != '\'') out += path[i];
      continue;
    }
    bool key = i + 1 < path.size() && path[i + 1] == '\'';
    if (key) {
      out += '.';
    } else {
      while (i < path.size() && path[i] != ']') ++i;
    }
  }
  return out;
}

/// A key that belongs to the document, but that TOML assigns to the table before it:
/// "axes.exclude". The table has no such key, or its values are strings.
std::optional<std::string> misplaced_key(const TomlEntry& entry) {
  if (entry.path.size() > 1) {
    const std::string &table = entry.path[0], &key = entry.path[1];
    bool is_word = entry.path.size() == 2 && entry.value.string() != nullptr;
    bool is_text_table = table == "args" || table == "labels" || table == "annotations";
    auto axes = axis_names();
    bool is_axis = std::ranges::find(axes, key) != axes.end();
    bool is_odd = (table == "axes" && !is_axis) || (is_text_table && !is_word);
    if (is_odd && has_key<Document>(key)) return table + "." + key;
    return std::nullopt;
  }
  if (entry.path[0] != "cell" || entry.value.array() == nullptr) return std::nullopt;
  const json::Array& cells = *entry.value.array();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].object() == nullptr) continue;
    for (const auto& [key, value] : *cells[i].object()) {
      bool is_odd = !has_key<CellDocument>(key) && has_key<Document>(key);
      if (is_odd) return fmt::format("cell[{}].{}", i, key);
    }
  }
  return std::nullopt;
}

Result<void> check_places(const Lines& lines) {
  for (const TomlEntry& entry : lines.entries()) {
    auto path = misplaced_key(entry);
    if (!path) continue;
    std::string key = path->substr(path->rfind('.') + 1);
    std::string table = entry.path[0] == "cell" ? "[[cell]]" : "[" + entry.path[0] + "]";
    return lines.fault(
        *path,
        make_error(Kind::usage, fmt::format("'{}' is a key of the file, not of {}", key, table),
                   fmt::format("{} = … before the first [table]", key)));
  }
  return {};
}

json::Value& member_of(json::Value& value, const std::string& name) {
  if (value.object() == nullptr) value = json::Object{};
  json::Object& members = *value.get_if<json::Object>();
  auto at = std::ranges::find_if(members, [&](const auto& one) { return one.first == name; });
  return at != members.end() ? at->second : members.emplace_back(name, nullptr).second;
}

json::Value as_json(const std::vector<TomlEntry>& entries) {
  json::Value out = json::Object{};
  for (const TomlEntry& entry : entries) {
    json::Value* place = &out;
    for (const std::string& name : entry.path) place = &member_of(*place, name);
    *place = entry.value;
  }
  return out;
}

}  // namespace

std::string Lines::place(std::string_view path, std::optional<uint64_t> element) const {
  const TomlEntry* best = nullptr;
  std::string wanted = plain(path);
  for (const TomlEntry& entry : entries_) {
    std::string key = policy::key_of(entry);
    bool above = wanted == key || (wanted.starts_with(key) && wanted[key.size()] == '.') ||
                 (key.starts_with(wanted) && key[wanted.size()] == '.');
    bool nearer = best == nullptr || policy::key_of(*best).size() < key.size();
    if (above && nearer) best = &entry;
  }
  std::string line;
  if (best != nullptr) line = fmt::format(":{}", line_of(*best, element ? element : index(path)));
  return fmt::format("{}{}: {}", document_, line, path);
}

Error Lines::fault(std::string_view path, Error error, std::optional<uint64_t> element) const {
  error.kind = Kind::usage;
  error.what = place(path, element) + ": " + error.what;
  return error;
}

Error Lines::fault(std::string_view path, std::string what) const {
  return fault(path, make_error(Kind::usage, std::move(what)));
}

Error Lines::fault_of_json(Error error) const {
  std::string head = document_ + ": ";
  std::string text = error.what.starts_with(head) ? error.what.substr(head.size()) : error.what;
  size_t end = text.find(": ");
  constexpr std::string_view kWord = "unknown member";
  if (size_t at = text.find(kWord); at != std::string::npos) {
    text.replace(at, kWord.size(), "unknown key");
  }
  if (end == std::string::npos) return fault("", std::move(error));
  return fault(text.substr(0, end), text.substr(end + 2));
}

Result<ReadDocument> read_document(std::string_view text, std::string_view name) {
  std::vector<TomlEntry> entries = TRY(policy::parse_toml(text, name));
  if (entries.size() > kMaxEntries) {
    return make_error(Kind::corrupt, fmt::format("{}: more than {} entries", name, kMaxEntries));
  }
  Lines lines(std::move(entries), std::string(name));
  TRY(check_places(lines));
  auto made = json::from_value<Document>(as_json(lines.entries()), name);
  if (!made.ok()) return lines.fault_of_json(std::move(made).error());
  return ReadDocument{std::move(*made), std::move(lines)};
}

}  // namespace berth::bake
