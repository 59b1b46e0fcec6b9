// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/requirement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

using Op = Factor::Op;

Result<Factor> parse_factor(std::string_view text) {
  size_t at = text.find_first_of("!<>=");
  std::string_view property = text.substr(0, at);
  static constexpr std::array<std::string_view, 4> kProperties = {"cuda", "driver", "arch",
                                                                  "brand"};
  if (at == std::string_view::npos ||
      std::ranges::find(kProperties, property) == kProperties.end()) {
    return make_error(
        Kind::corrupt,
        fmt::format("expected cuda, driver, arch or brand with a value, got {}", quote(text)));
  }
  Factor factor;
  factor.property = property;
  factor.text = text;
  std::string_view rest = text.substr(at);
  if (auto op = take_operator(rest)) {
    factor.op = *op;
    factor.value = rest;
    bool ordered = *op != Op::equal && *op != Op::not_equal;
    bool usable = property == "brand" ? !ordered && !factor.value.empty()
                                      : compare_versions(factor.value, "0").has_value();
    if (usable) return factor;
  }
  return make_error(Kind::corrupt, fmt::format("expected a comparison, got {}", quote(text)));
}

Truth truth(bool value) {
  return value ? Truth::yes : Truth::no;
}

Truth evaluate(const Factor& factor, const RequirementFacts& facts) {
  const auto& fact = factor.property == "cuda"     ? facts.cuda
                     : factor.property == "driver" ? facts.driver
                     : factor.property == "arch"   ? facts.arch
                                                   : facts.brand;
  if (!fact) return Truth::unknown;
  if (factor.property == "brand") {
    bool equal = to_lower(*fact) == to_lower(factor.value);
    return truth(factor.op == Op::equal ? equal : !equal);
  }
  auto order = compare_versions(*fact, factor.value);
  return order ? truth(holds(factor.op, *order)) : Truth::unknown;
}

std::optional<std::vector<uint64_t>> numbers(std::string_view version) {
  std::vector<uint64_t> out;
  for (std::string_view part : split(version, '.')) {
    auto number = parse_u64(part);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  while (!out.empty() && out.back() == 0) out.pop_back();
  return out;
}

}  // namespace

Result<Requirement> parse_requirement(std::string_view text) {
  Requirement out;
  for (std::string_view term : split_blank(text)) {
    auto& factors = out.emplace_back();
    for (std::string_view factor : split(term, ',')) factors.push_back(TRY(parse_factor(factor)));
  }
  if (out.empty()) return make_error(Kind::corrupt, "expected a requirement, got nothing");
  return out;
}

Truth evaluate(const Requirement& requirement, const RequirementFacts& facts) {
  Truth any = Truth::no;
  for (const auto& term : requirement) {
    Truth all = Truth::yes;
    for (const Factor& factor : term) {
      Truth one = evaluate(factor, facts);
      if (one == Truth::no) all = Truth::no;
      if (one == Truth::unknown && all == Truth::yes) all = Truth::unknown;
    }
    if (all == Truth::yes) return Truth::yes;
    if (all == Truth::unknown) any = Truth::unknown;
  }
  return any;
}

std::optional<Op> take_operator(std::string_view& text) {
  for (const auto& [op, spelling] : names_of(std::type_identity<Op>())) {
    if (!text.starts_with(spelling)) continue;
    text.remove_prefix(spelling.size());
    return op;
  }
  return std::nullopt;
}

bool holds(Op op, int order) {
  switch (op) {
    case Op::equal:
      return order == 0;
    case Op::not_equal:
      return order != 0;
    case Op::less:
      return order < 0;
    case Op::less_equal:
      return order <= 0;
    case Op::greater:
      return order > 0;
    case Op::greater_equal:
      return order >= 0;
  }
  BERTH_ASSERT(false);
}

std::optional<int> compare_versions(std::string_view left, std::string_view right) {
  auto l = numbers(left), r = numbers(right);
  if (!l || !r) return std::nullopt;
  if (*l == *r) return 0;
  return std::lexicographical_compare(l->begin(), l->end(), r->begin(), r->end()) ? -1 : 1;
}

}  // namespace berth::gpu
