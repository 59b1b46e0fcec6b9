// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::policy {

/// The document in a form that toml++ can read, with the same lines. The white space table of
/// toml++ treats most characters beyond ASCII (e.g. U+00A1 to U+0499) as unreachable. toml++ uses
/// that table in two places: outside of strings and comments, where TOML 1.0 allows no such
/// character, and after a backslash at the end of a line in a string, where this function escapes
/// the character. Pure. Errors: corrupt (a character where TOML does not allow it; the error names
/// document and line).
Result<std::string> spell_letters(std::string_view text, std::string_view document);

}  // namespace berth::policy
