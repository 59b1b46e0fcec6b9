// SPDX-License-Identifier: Apache-2.0
#include "policy/site/site.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {
namespace {

/// {"gpu": {"environment": …}}: the document as if the entry stood alone.
json::Value alone(const TomlEntry& entry) {
  json::Value value = entry.value;
  for (auto name = entry.path.rbegin(); name != entry.path.rend(); ++name) {
    json::Object object;
    object.emplace_back(*name, std::move(value));
    value = json::Value(std::move(object));
  }
  return value;
}

// Entry by entry, so that every fault has its line and one fault hides no other.
void take(const TomlEntry& entry, std::string_view document, SiteFile& file) {
  std::string place = fmt::format("{}:{}", document, entry.line);
  json::Value value = alone(entry);
  auto fault = json::fill(value, json::Path(place), file.compiled.policy);
  if (!fault) {
    file.compiled.lines[key_of(entry)] = entry.line;
    return;
  }
  fault->kind = Kind::usage;
  constexpr std::string_view kWord = "unknown member";
  size_t at = fault->what.find(kWord);
  if (at != std::string::npos) fault->what.replace(at, kWord.size(), "unknown key");
  file.faults.push_back(std::move(*fault));
}

// "gpu.always: …" is given its line.
void check_values(std::string_view document, SiteFile& file) {
  auto checked = check(file.compiled.policy);
  if (checked.ok()) return;
  Error fault = std::move(checked).error();
  auto line = file.compiled.lines.find(fault.what.substr(0, fault.what.find(':')));
  std::string place(document);
  if (line != file.compiled.lines.end()) place += fmt::format(":{}", line->second);
  fault.what = place + ": " + fault.what;
  file.faults.push_back(std::move(fault));
}

}  // namespace

Result<SiteFile> read_site(std::string_view text, std::string_view document) {
  SiteFile file;
  file.compiled.format = kFormat;
  file.compiled.source = document;
  for (const TomlEntry& entry : TRY(parse_toml(text, document))) take(entry, document, file);
  check_values(document, file);
  return file;
}

Result<Compiled> compile(std::string_view text, std::string_view document) {
  SiteFile file = TRY(read_site(text, document));
  if (!file.faults.empty()) return std::move(file.faults.front());
  return std::move(file.compiled);
}

}  // namespace berth::policy
