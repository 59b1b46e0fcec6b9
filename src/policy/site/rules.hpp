// SPDX-License-Identifier: Apache-2.0
// Parses handwritten rules: [[rule]] in policy.d/*.toml and policy.toml.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/rules.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {

inline constexpr const char* kRuleDirectory = "policy.d";

/// A parsed rule, with the lines of its keys for errors.
struct ReadRule {
  PlacedRule placed;
  std::map<std::string, uint32_t> lines;  ///< {"mounts": 4, "when.user": 3}
};

/// "policy.toml:4: mounts: …" for a fault found in a parsed rule.
Error fault_at(const ReadRule& rule, std::string_view document, const std::string& key,
               Error fault);

/// Parses the entry "rule": each of its tables is one rule. Appends faults to `faults`, as usage
/// errors with their lines.
void read_rules(const TomlEntry& entry, std::string_view document, std::vector<ReadRule>& rules,
                std::vector<Error>& faults);

}  // namespace berth::policy
