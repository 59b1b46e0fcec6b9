// SPDX-License-Identifier: Apache-2.0
// What the cells of a bake may differ in: the words of docs/variants.md, and the platform. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bake {

/// Axis → value, as the bake file has it: {"cpu", "x86-64-v3"}. "none" is no demand.
using AxisValues = std::map<std::string, std::string>;

/// All names: "cuda", "cpu", "cc", …; in the order of the names of cells.
std::vector<std::string_view> axis_names();

/// Errors: usage (no such axis, with the nearest; a value that nobody could read, a processor that
/// archspec does not know).
Result<void> check_axis(std::string_view axis, std::string_view value);

/// The annotations that say the same in an index: {"dev.berth.variant.cpu", "x86-64-v3"}.
std::map<std::string, std::string> annotations_of(const AxisValues& axes);

/// Whether what `strict` says of an axis lets in no node that `loose` refuses: "x86-64-v4" and
/// "x86-64-v3", ">=6.1" and ">=5.10".
bool asks_as_much(std::string_view axis, const std::string& strict, const std::string& loose);

/// What a cell is called by the axes that it differs in: "cu128-v3-sm90"; "generic" for none.
std::string usual_name(const AxisValues& axes);

/// Orders cells by what they ask of a node: the least first, which is the generic one.
struct Demand {
  uint32_t demands = 0;  ///< axes that any node may lack
  uint32_t cpu = 0;      ///< level of x86-64; 8 for a processor of its own
  std::string cuda;      ///< compared as a version
  bool operator<(const Demand& other) const;
};
Demand demand_of(const AxisValues& axes);

/// `text` with "{cpu}", "{version}" and so on replaced; "{{" and "}}" are braces.
/// Errors: usage (no such word, with the nearest; a brace without its other).
Result<std::string> fill_in(std::string_view text, const std::map<std::string, std::string>& words);

}  // namespace berth::bake
