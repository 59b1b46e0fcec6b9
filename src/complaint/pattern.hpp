// SPDX-License-Identifier: Apache-2.0
// What a line of a log is compared with: literal text and a few holes, in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::complaint {

/// One line of a log as patterns are compared with it: runs of blanks are one blank, escape
/// sequences of a terminal are left out, none stand at its ends.
struct Line {
  std::string text;
  std::string lower;  ///< the same in lower case
};
Line line_of(std::string_view raw);

inline constexpr size_t kMaxHoles = 3;
using Captures = std::array<std::string_view, kMaxHoles>;  ///< parts of Line::text; empty: no hole

/// Finds `pattern`, which is in lower case, in a line. What stands in it is literal but for
///   {v}  a version: digits and dots        {n}  a number of at most ten digits
///   {w}  a word or path: no blank, quote, bracket, comma, backslash
///   {t}  any text, as short as possible, at most 200 bytes
///   {*}  the same, at most 500 bytes, and it is no capture
/// and ^ at its beginning and $ at its end, which are those of the line. It may begin with {w}, {n}
/// or {t}, which then reach back from the literal behind them. Where it begins or ends with a
/// letter or digit, no other letter or digit stands beside it. At most kMaxHoles captures. Takes
/// time in proportion to the line.
std::optional<Captures> match(std::string_view pattern, const Line& line);

/// The first literal text of a pattern: a line without it does not match.
std::string_view anchor(std::string_view pattern);

}  // namespace berth::complaint
