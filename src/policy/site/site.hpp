// SPDX-License-Identifier: Apache-2.0
// What people write: policy.toml.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/policy.hpp"

namespace berth::policy {

inline constexpr const char* kSourceName = "policy.toml";

/// A text as read: the policy it makes and all that is wrong with it.
struct SiteFile {
  Compiled compiled;
  /// usage: an unknown key with the nearest, a value that is none; each begins "policy.toml:3: ".
  std::vector<Error> faults;
};

/// `document` names the text in errors, and becomes the source of what is compiled.
/// Errors: corrupt (no TOML).
Result<SiteFile> read_site(std::string_view text, std::string_view document);

/// The policy of a text without faults. Errors: the first fault, and those of read_site().
Result<Compiled> compile(std::string_view text, std::string_view document);

}  // namespace berth::policy
