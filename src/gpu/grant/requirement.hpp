// SPDX-License-Identifier: Apache-2.0
// The requirements that images state in NVIDIA_REQUIRE_<NAME> variables: parsed and compared.
// sources.cpp decides which of them count, grant.cpp refuses GPUs and drivers that fail one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"

namespace berth::gpu {

/// One comparison: "cuda>=12.4".
struct Factor {
  enum class Op { equal, not_equal, less, less_equal, greater, greater_equal };
  std::string property;  ///< cuda, driver, arch, brand
  Op op = Op::equal;
  std::string value;
  std::string text;  ///< as written
};

/// Longer operators first: "<=" before "<".
constexpr EnumNames<Factor::Op, 6> names_of(std::type_identity<Factor::Op>) {
  return {{{Factor::Op::not_equal, "!="},
           {Factor::Op::less_equal, "<="},
           {Factor::Op::greater_equal, ">="},
           {Factor::Op::equal, "="},
           {Factor::Op::less, "<"},
           {Factor::Op::greater, ">"}}};
}

/// Terms are ORed, the factors of a term ANDed: "cuda>=12.4 brand=tesla,driver>=470".
using Requirement = std::vector<std::vector<Factor>>;

/// Errors: corrupt (an unknown property or operator, no value, a brand compared with < or >).
Result<Requirement> parse_requirement(std::string_view text);

/// Facts about the machine and one GPU. A factor about a missing fact is unknown.
struct RequirementFacts {
  std::optional<std::string> cuda, driver, arch, brand;
};

enum class Truth { no, yes, unknown };

/// Three-valued: a requirement is refused only when it is certain to fail.
Truth evaluate(const Requirement& requirement, const RequirementFacts& facts);

/// Removes the leading operator ("!=", "<=", ">=", "=", "<", ">") from `text` and returns it.
std::optional<Factor::Op> take_operator(std::string_view& text);

/// Whether `order`, the result of a comparison (negative: less), satisfies `op`.
bool holds(Factor::Op op, int order);

/// Compares dotted numbers, ignoring trailing zeros ("12.0" equals "12"); nothing for other
/// strings.
std::optional<int> compare_versions(std::string_view left, std::string_view right);

}  // namespace berth::gpu
