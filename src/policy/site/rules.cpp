// SPDX-License-Identifier: Apache-2.0
#include "policy/site/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "policy/site/fill.hpp"

namespace berth::policy {
namespace {

constexpr std::array<std::string_view, 7> kLists = {
    "mounts", "tmpfs", "devices", "env-unset", "gpu-capabilities", "ulimits", "registries"};
constexpr std::array<std::string_view, 4> kTexts = {"gpus", "memory", "cpus", "shm-size"};

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

/// Turns a string into a list with one element.
void make_list(json::Value& value) {
  if (value.string() != nullptr) value = json::Array{value};
}

/// `entry` without the first name of its path.
TomlEntry below(TomlEntry entry) {
  entry.path.erase(entry.path.begin());
  return entry;
}

/// Parses one rule.
class RuleReader {
 public:
  RuleReader(std::string_view document, ReadRule& rule, std::vector<Error>& faults)
      : document_(document), read_(rule), faults_(faults) {}

  void take(const TomlEntry& entry);
  void check_all();

 private:
  void wrong(uint32_t line, std::string_view key, const std::string& what) {
    faults_.push_back(make_error(
        Kind::usage, fmt::format("{}:{}: {}: {}", document_, line, escape_controls(key), what)));
  }
  void take_condition(TomlEntry entry, const std::string& under, When& when);
  void take_conditions(const TomlEntry& entry, std::vector<When>& out);
  void take_variable(const TomlEntry& entry, std::map<std::string, std::string>& out);
  void take_hooks(const TomlEntry& entry);
  void take_value(TomlEntry entry);

  std::string_view document_;
  ReadRule& read_;
  std::vector<Error>& faults_;
};

void RuleReader::take_condition(TomlEntry entry, const std::string& under, When& when) {
  if (entry.path.size() == 1 && entry.path[0] != "gpus") make_list(entry.value);
  if (auto fault = fill_entry(entry, document_, when, under)) {
    faults_.push_back(std::move(*fault));
  } else {
    read_.lines[under + "." + key_of(entry)] = entry.line;
  }
}

void RuleReader::take_conditions(const TomlEntry& entry, std::vector<When>& out) {
  const std::string& key = entry.path[0];
  read_.lines.try_emplace(key, entry.line);
  // "when.user = …" and "when = { user = … }" are one set of conditions; "[[rule.when]]" are
  // several.
  if (entry.path.size() > 1) {
    if (out.empty()) out.emplace_back();
    return take_condition(below(entry), key, out.front());
  }
  bool empty = entry.value.object() != nullptr && entry.value.object()->empty();
  if (empty) return;
  if (entry.tables.empty()) {
    return wrong(entry.line, key, fmt::format("expected a table, got {}", entry.value.type_name()));
  }
  for (const std::vector<TomlEntry>& table : entry.tables) {
    When& when = out.emplace_back();
    for (const TomlEntry& one : table) take_condition(one, key, when);
  }
}

void RuleReader::take_variable(const TomlEntry& entry, std::map<std::string, std::string>& out) {
  const std::string& key = entry.path[0];
  read_.lines.try_emplace(key, entry.line);
  bool empty = entry.value.object() != nullptr && entry.value.object()->empty();
  if (empty && entry.path.size() == 1) return;
  const std::string* value = entry.value.string();
  if (entry.path.size() != 2) {
    wrong(entry.line, key_of(entry), "expected a table of NAME = \"value\"");
  } else if (value == nullptr) {
    wrong(entry.line, key_of(entry),
          fmt::format("expected a string, got {}", entry.value.type_name()));
  } else {
    out[entry.path[1]] = *value;
  }
}

void RuleReader::take_hooks(const TomlEntry& entry) {
  if (entry.path.size() > 1 || entry.tables.empty()) {
    return wrong(entry.line, "hooks", "expected a list of tables, as [[rule.hooks]]");
  }
  read_.lines.try_emplace("hooks", entry.line);
  for (size_t i = 0; i < entry.tables.size(); ++i) {
    const json::Value& value = entry.value.array()->at(i);
    uint32_t line = i < entry.element_lines.size() ? entry.element_lines[i] : entry.line;
    TomlEntry whole{{}, line, value};
    SiteHook hook;
    if (auto fault = fill_entry(whole, document_, hook, "hooks")) {
      faults_.push_back(std::move(*fault));
    } else {
      read_.placed.rule.hooks.push_back(std::move(hook));
    }
  }
}

void RuleReader::take_value(TomlEntry entry) {
  if (entry.path.size() == 1) {
    const std::string& key = entry.path[0];
    if (is_one_of(key, kLists)) make_list(entry.value);
    bool number = entry.value.get_if<int64_t>() != nullptr || entry.value.get_if<double>();
    if (number && is_one_of(key, kTexts)) entry.value = json::dump(entry.value);
  }
  if (auto fault = fill_entry(entry, document_, read_.placed.rule)) {
    faults_.push_back(std::move(*fault));
  } else {
    read_.lines[key_of(entry)] = entry.line;
  }
}

void RuleReader::take(const TomlEntry& entry) {
  Rule& rule = read_.placed.rule;
  const std::string& key = entry.path[0];
  if (key == "when") return take_conditions(entry, rule.when);
  if (key == "unless") return take_conditions(entry, rule.unless);
  if (key == "env") return take_variable(entry, rule.env);
  if (key == "env-default") return take_variable(entry, rule.env_default);
  if (key == "env-force") return take_variable(entry, rule.env_force);
  if (key == "hooks") return take_hooks(entry);
  take_value(entry);
}

void RuleReader::check_all() {
  for (RuleFault& fault : check(read_.placed.rule)) {
    faults_.push_back(fault_at(read_, document_, fault.key, std::move(fault.error)));
  }
}

}  // namespace

Error fault_at(const ReadRule& rule, std::string_view document, const std::string& key,
               Error fault) {
  auto line = rule.lines.find(key);
  if (line == rule.lines.end()) line = rule.lines.find(key.substr(0, key.find('.')));
  std::string place = rule.placed.place;
  if (line != rule.lines.end()) place = fmt::format("{}:{}", document, line->second);
  fault.kind = Kind::usage;
  fault.what = fmt::format("{}: {}: {}", place, key, fault.what);
  return fault;
}

void read_rules(const TomlEntry& entry, std::string_view document, std::vector<ReadRule>& rules,
                std::vector<Error>& faults) {
  bool good = entry.path.size() == 1 && !entry.tables.empty();
  if (!good) {
    faults.push_back(make_error(
        Kind::usage, fmt::format("{}:{}: rule: expected [[rule]]", document, entry.line)));
    return;
  }
  for (size_t i = 0; i < entry.tables.size(); ++i) {
    uint32_t line = i < entry.element_lines.size() ? entry.element_lines[i] : entry.line;
    ReadRule& rule = rules.emplace_back();
    rule.placed.place = fmt::format("{}:{}", document, line);
    size_t before = faults.size();
    RuleReader reader(document, rule, faults);
    for (const TomlEntry& one : entry.tables[i]) reader.take(one);
    // A condition that cannot be parsed is missing in the rule, so only a rule without faults is
    // checked further.
    if (faults.size() == before) reader.check_all();
  }
}

}  // namespace berth::policy
