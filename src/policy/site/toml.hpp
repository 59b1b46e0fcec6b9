// SPDX-License-Identifier: Apache-2.0
// Reads TOML as JSON values, each with its line. Only this file uses toml++; it catches the
// exceptions of toml++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::policy {

/// One "key = value", with the path of the tables that contain it.
struct TomlEntry {
  std::vector<std::string> path;  ///< {"gpu", "environment"}
  uint32_t line = 0;
  json::Value value;                         ///< an object only if it is a table without entries
  std::vector<uint32_t> element_lines = {};  ///< for an array: the lines of its elements
  /// For an array of tables, "[[rule]]": the entries of each table, with paths relative to it.
  std::vector<std::vector<TomlEntry>> tables = {};
};

/// The name of an entry: "gpu.environment".
std::string key_of(const TomlEntry& entry);

/// A document with only this entry: {"gpu": {"environment": …}}.
json::Value alone(const TomlEntry& entry);

/// The entries of a document of at most 1 MiB, in the order of its lines; `document` names it in
/// errors: "policy.toml:3: …". Dates and times become text.
/// Errors: corrupt (invalid TOML, too deep nesting).  https://toml.io/en/v1.0.0
Result<std::vector<TomlEntry>> parse_toml(std::string_view text, std::string_view document);

/// `text` as a quoted TOML string.
std::string toml_string(std::string_view text);

}  // namespace berth::policy
