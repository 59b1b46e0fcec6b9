// SPDX-License-Identifier: Apache-2.0
// Reads TOML into structs that have a table of fields.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "json/fields.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {

/// Fills `out` from one entry. Entries are read one by one, so that every fault has its line and no
/// fault hides another. `under` is the table of the entry, if its path does not contain the table.
/// Returns usage errors "policy.toml:3: …": an unknown key, suggesting the nearest one, if the
/// table of fields is strict() (json/fields.hpp); an invalid value.
template <class T>
std::optional<Error> fill_entry(const TomlEntry& entry, std::string_view document, T& out,
                                std::string_view under = {}) {
  std::string place = fmt::format("{}:{}", document, entry.line);
  json::Path root(place);
  auto fault = json::fill(alone(entry), under.empty() ? root : root.member(under), out);
  if (!fault) return std::nullopt;
  fault->kind = Kind::usage;
  constexpr std::string_view kWord = "unknown member";
  size_t at = fault->what.find(kWord);
  if (at != std::string::npos) fault->what.replace(at, kWord.size(), "unknown key");
  return fault;
}

}  // namespace berth::policy
