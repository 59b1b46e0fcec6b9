// SPDX-License-Identifier: Apache-2.0
// What people write: policy.toml, and rules in policy.d.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/policy.hpp"
#include "policy/site/rules.hpp"

namespace berth::policy {

inline constexpr const char* kSourceName = "policy.toml";

/// A text as read: the policy it makes and all that is wrong with it.
struct SiteFile {
  Compiled compiled;            ///< with its rules
  std::vector<ReadRule> rules;  ///< the same, with their lines
  /// usage: an unknown key with the nearest, a value that is none; each begins "policy.toml:3: ".
  std::vector<Error> faults;
};

/// Which keys a text may have.
enum class SiteKeys {
  all,
  rules,  ///< [[rule]] alone: a file of policy.d
};

/// `document` names the text in errors, and becomes the source of what is compiled.
/// Errors: corrupt (no TOML).
Result<SiteFile> read_site(std::string_view text, std::string_view document,
                           SiteKeys keys = SiteKeys::all);

/// The policy of a text without faults. Errors: the first fault, and those of read_site().
Result<Compiled> compile(std::string_view text, std::string_view document);

}  // namespace berth::policy
