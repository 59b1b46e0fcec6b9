// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::policy {

/// The document in a form that toml++ can read, with the same lines. Its table of white space marks
/// as unreachable the case of most letters beyond ASCII (e.g. U+00A1 to U+0499). It is used in two
/// places: outside of strings and comments, where TOML 1.0 allows none of them, and behind a
/// backslash at the end of a string's line, where this function escapes the letter. Pure. Errors:
/// corrupt (a letter where TOML allows none, by document and line).
Result<std::string> spell_letters(std::string_view text, std::string_view document);

}  // namespace berth::policy
