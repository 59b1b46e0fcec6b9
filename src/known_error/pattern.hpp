// SPDX-License-Identifier: Apache-2.0
// Patterns for lines of a log: literal text and a few holes, matched in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::known_error {

/// One line of a log in normal form: runs of blanks are one blank, terminal escape sequences are
/// removed, and it is trimmed.
struct Line {
  std::string text;
  std::string lower;  ///< the same in lower case
};
Line line_of(std::string_view raw);

inline constexpr size_t kMaxHoles = 3;
using Captures = std::array<std::string_view, kMaxHoles>;  ///< parts of Line::text; empty: no hole

/// Finds `pattern`, which is in lower case, in a line. The pattern is literal except for
///   {v}  a version: digits and dots        {n}  a number of at most ten digits
///   {w}  a word or path: no blank, quote, bracket, comma, backslash
///   {t}  any text, as short as possible, at most 200 bytes
///   {*}  the same, at most 500 bytes, without a capture
/// and ^ at its beginning and $ at its end, which match the beginning and the end of the line. It
/// may begin with {w}, {n} or {t}, which then extend backwards from the literal text after them. A
/// letter or digit at the beginning or end of the pattern only matches at the beginning or end of a
/// word. At most kMaxHoles captures. The time is proportional to the length of the line.
std::optional<Captures> match(std::string_view pattern, const Line& line);

/// The first literal text of a pattern: a line without it does not match.
std::string_view anchor(std::string_view pattern);

}  // namespace berth::known_error
