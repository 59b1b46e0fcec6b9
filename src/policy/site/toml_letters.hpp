// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::policy {

/// The document as toml++ can read it, with the same lines. Its table of white space calls
/// unreachable what most letters beyond ASCII would reach (U+00A1 to U+0499 among them). They are
/// asked about in two places: outside of texts and comments, where TOML 1.0 has none of them, and
/// behind a backslash that ends a line of a text, where the letter is written as its escape here.
/// Pure. Errors: corrupt (a letter where TOML has none, by document and line).
Result<std::string> spell_letters(std::string_view text, std::string_view document);

}  // namespace berth::policy
