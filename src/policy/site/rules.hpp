// SPDX-License-Identifier: Apache-2.0
// What people write: [[rule]] in policy.d/*.toml and policy.toml.
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

/// A rule as it was read. A fault of one of its keys is told with the line of that.
struct ReadRule {
  PlacedRule placed;
  std::map<std::string, uint32_t> lines;  ///< {"mounts": 4, "when.user": 3}
};

/// "policy.toml:4: mounts: …" of a fault that was found in a rule after it was read.
Error fault_at(const ReadRule& rule, std::string_view document, const std::string& key,
               Error fault);

/// Reads the entry "rule": each of its tables is one rule. What is wrong goes to `faults`, usage
/// errors with their lines.
void read_rules(const TomlEntry& entry, std::string_view document, std::vector<ReadRule>& rules,
                std::vector<Error>& faults);

}  // namespace berth::policy
