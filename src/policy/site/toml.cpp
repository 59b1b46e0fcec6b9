// SPDX-License-Identifier: Apache-2.0
#include "policy/site/toml.hpp"

#include <algorithm>
#include <stdexcept>

// Some malformed documents violate assertions of toml++ 3.3, which release builds take for granted.
// Here a failed assertion becomes an ordinary error.
namespace berth::policy {
[[noreturn]] static void not_toml() {
  throw std::runtime_error("not a TOML document");
}
}  // namespace berth::policy
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::berth::policy::not_toml())
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/text.hpp"
#include "policy/site/toml_letters.hpp"

namespace berth::policy {
namespace {

constexpr size_t kMaxTomlBytes = size_t{1} << 20;
constexpr int kMaxDepth = 16;
constexpr int64_t kMaxDots = 2000;

Error too_deep(std::string_view document, uint32_t line) {
  return make_error(Kind::corrupt, fmt::format("{}:{}: nested too deep", document, line));
}

// toml++ limits the nesting of values but not of dotted keys. Each part of a dotted key is a nested
// table, and toml++ destroys tables recursively. No real line has as many dots.
Result<void> check_dots(std::string_view text, std::string_view document) {
  int64_t dots = 0;
  uint32_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (!trim(line).starts_with('#')) dots += std::ranges::count(line, '.');
    if (dots > kMaxDots) return too_deep(document, number);
  }
  return {};
}

Result<json::Value> value_of(const toml::node& node, std::string_view document, int depth) {
  if (depth > kMaxDepth) return too_deep(document, node.source().begin.line);
  if (const auto* text = node.as_string()) return json::Value(text->get());
  if (const auto* number = node.as_integer()) return json::Value(int64_t{number->get()});
  if (const auto* number = node.as_floating_point()) return json::Value(number->get());
  if (const auto* truth = node.as_boolean()) return json::Value(truth->get());
  if (const auto* array = node.as_array()) {
    json::Array out;
    for (const toml::node& element : *array) {
      out.push_back(TRY(value_of(element, document, depth + 1)));
    }
    return json::Value(std::move(out));
  }
  if (const auto* table = node.as_table()) {
    json::Object out;
    for (const auto& [key, element] : *table) {
      json::Value value = TRY(value_of(element, document, depth + 1));
      out.emplace_back(std::string(key.str()), std::move(value));
    }
    return json::Value(std::move(out));
  }
  return make_error(Kind::corrupt, fmt::format("{}:{}: dates and times are not allowed", document,
                                               node.source().begin.line));
}

std::vector<uint32_t> element_lines(const toml::node& node) {
  std::vector<uint32_t> lines;
  const toml::array* array = node.as_array();
  if (array == nullptr) return lines;
  for (const toml::node& element : *array) lines.push_back(element.source().begin.line);
  return lines;
}

void sort_by_line(std::vector<TomlEntry>& entries) {
  std::ranges::stable_sort(entries,
                           [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
}

Result<void> add_entries(const toml::table& table, std::vector<std::string>& path,
                         std::string_view document, std::vector<TomlEntry>& out);

Result<std::vector<std::vector<TomlEntry>>> tables_of(const toml::node& node,
                                                      std::vector<std::string>& path,
                                                      std::string_view document) {
  std::vector<std::vector<TomlEntry>> out;
  const toml::array* array = node.as_array();
  if (array == nullptr || !array->is_array_of_tables()) return out;
  for (const toml::node& element : *array) {
    std::vector<TomlEntry> entries;
    TRY(add_entries(*element.as_table(), path, document, entries));
    for (TomlEntry& entry : entries) {
      entry.path.erase(entry.path.begin(),
                       entry.path.begin() + static_cast<std::ptrdiff_t>(path.size()));
    }
    sort_by_line(entries);
    out.push_back(std::move(entries));
  }
  return out;
}

Result<void> add_entries(const toml::table& table, std::vector<std::string>& path,
                         std::string_view document, std::vector<TomlEntry>& out) {
  if (path.size() > kMaxDepth) return too_deep(document, table.source().begin.line);
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    const toml::table* inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      TRY(add_entries(*inner, path, document, out));
    } else {
      uint32_t line = std::max(key.source().begin.line, toml::source_index{1});
      json::Value value = TRY(value_of(node, document, 0));
      auto tables = TRY(tables_of(node, path, document));
      out.push_back({path, line, std::move(value), element_lines(node), std::move(tables)});
    }
    path.pop_back();
  }
  return {};
}

}  // namespace

std::string key_of(const TomlEntry& entry) {
  return join(entry.path, ".");
}

json::Value alone(const TomlEntry& entry) {
  json::Value value = entry.value;
  for (auto name = entry.path.rbegin(); name != entry.path.rend(); ++name) {
    json::Object object;
    object.emplace_back(*name, std::move(value));
    value = json::Value(std::move(object));
  }
  return value;
}

Result<std::vector<TomlEntry>> parse_toml(std::string_view text, std::string_view document) {
  if (text.size() > kMaxTomlBytes) {
    return make_error(Kind::corrupt, fmt::format("{}: longer than 1 MiB", document));
  }
  TRY(check_dots(text, document));
  std::string spelled = TRY(spell_letters(text, document));
  std::vector<TomlEntry> out;
  try {
    toml::table table = toml::parse(spelled);
    std::vector<std::string> path;
    TRY(add_entries(table, path, document, out));
  } catch (const toml::parse_error& error) {
    return make_error(Kind::corrupt, fmt::format("{}:{}: {}", document, error.source().begin.line,
                                                 escape_controls(error.description())));
  } catch (const std::exception& error) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: {}", document, escape_controls(error.what())));
  }
  sort_by_line(out);
  return out;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace berth::policy
