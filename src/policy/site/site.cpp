// SPDX-License-Identifier: Apache-2.0
#include "policy/site/site.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "policy/site/fill.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {
namespace {

void take(const TomlEntry& entry, std::string_view document, SiteKeys keys, SiteFile& file) {
  if (entry.path[0] == "rule") return read_rules(entry, document, file.rules, file.faults);
  if (keys == SiteKeys::rules) {
    file.faults.push_back(
        make_error(Kind::usage,
                   fmt::format("{}:{}: {}: only [[rule]] is allowed in {}", document, entry.line,
                               escape_controls(key_of(entry)), kRuleDirectory),
                   kSourceName));
    return;
  }
  if (auto fault = fill_entry(entry, document, file.compiled.policy)) {
    file.faults.push_back(std::move(*fault));
  } else {
    file.compiled.lines[key_of(entry)] = entry.line;
  }
}

// Checks the values, and adds the line to faults such as "gpu.always: …".
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

Result<SiteFile> read_site(std::string_view text, std::string_view document, SiteKeys keys) {
  SiteFile file;
  file.compiled.format = kFormat;
  file.compiled.source = document;
  for (const TomlEntry& entry : TRY(parse_toml(text, document))) {
    take(entry, document, keys, file);
  }
  for (const ReadRule& rule : file.rules) file.compiled.rules.push_back(rule.placed);
  check_values(document, file);
  return file;
}

Result<Compiled> compile(std::string_view text, std::string_view document) {
  SiteFile file = TRY(read_site(text, document));
  if (!file.faults.empty()) return std::move(file.faults.front());
  return std::move(file.compiled);
}

}  // namespace berth::policy
