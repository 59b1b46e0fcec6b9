// SPDX-License-Identifier: Apache-2.0
// Parses handwritten policy: policy.toml, and rules in policy.d.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/policy.hpp"
#include "policy/site/rules.hpp"

namespace berth::policy {

inline constexpr const char* kSourceName = "policy.toml";

/// A parsed text: the resulting policy and all faults.
struct SiteFile {
  Compiled compiled;            ///< including the rules
  std::vector<ReadRule> rules;  ///< the same rules, with their lines
  /// usage: an unknown key, suggesting the nearest one; an invalid value. Each begins with
  /// "policy.toml:3: ".
  std::vector<Error> faults;
};

/// Which keys a text may have.
enum class SiteKeys {
  all,
  rules,  ///< only [[rule]]: a file of policy.d
};

/// `document` names the text in errors, and becomes the source of the compiled policy.
/// Errors: corrupt (invalid TOML).
Result<SiteFile> read_site(std::string_view text, std::string_view document,
                           SiteKeys keys = SiteKeys::all);

/// The policy of a text that has no faults. Errors: the first fault, and those of read_site().
Result<Compiled> compile(std::string_view text, std::string_view document);

}  // namespace berth::policy
