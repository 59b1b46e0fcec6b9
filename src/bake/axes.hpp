// SPDX-License-Identifier: Apache-2.0
// The axes of variants of an image (docs/variants.md), and the platform. A cell is one image that
// `berth bake` makes, with its values of the axes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bake {

/// Axis → value, as in the bake file: {"cpu", "x86-64-v3"}. "none" demands nothing of a node.
using AxisValues = std::map<std::string, std::string>;

/// All axes, in the order used in names of cells: "cuda", "cpu", "cc", …
std::vector<std::string_view> axis_names();

/// Errors: usage (an unknown axis, suggesting the nearest one; an invalid value; a processor that
/// archspec does not know).
Result<void> check_axis(std::string_view axis, std::string_view value);

/// The equivalent annotations of an index: {"dev.berth.variant.cpu", "x86-64-v3"}.
std::map<std::string, std::string> annotations_of(const AxisValues& axes);

/// Whether `strict` demands at least as much as `loose`, so that it admits no node that `loose`
/// refuses: "x86-64-v4" and "x86-64-v3", ">=6.1" and ">=5.10".
bool asks_as_much(std::string_view axis, const std::string& strict, const std::string& loose);

/// The default name of a cell, from the values of its axes: "cu128-v3-sm90"; "generic" if `axes`
/// demands nothing.
std::string usual_name(const AxisValues& axes);

/// Orders cells by their demands on a node: the cell with the fewest demands, the generic one, is
/// first.
struct Demand {
  uint32_t demands = 0;  ///< number of axes of which some nodes do not meet the value
  uint32_t cpu = 0;      ///< level of x86-64; 8 for a specific processor
  std::string cuda;      ///< compared as a version
  bool operator<(const Demand& other) const;
};
Demand demand_of(const AxisValues& axes);

/// `text` with "{cpu}", "{version}" and so on replaced; "{{" and "}}" are braces.
/// Errors: usage (an unknown word, suggesting the nearest one; an unmatched brace).
Result<std::string> fill_in(std::string_view text, const std::map<std::string, std::string>& words);

}  // namespace berth::bake
