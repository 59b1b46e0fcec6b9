// SPDX-License-Identifier: Apache-2.0
// The names of an enum's values. One table next to the enum serves conversions in both directions,
// and JSON documents (json/fields.hpp).
//
//   enum class Trust { inside, outside };
//   constexpr EnumNames<Trust, 2> names_of(std::type_identity<Trust>) {
//     return {{{Trust::inside, "inside"}, {Trust::outside, "outside"}}};
//   }
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace berth {

template <class Enum, size_t N>
using EnumNames = std::array<std::pair<Enum, std::string_view>, N>;

template <class T>
concept HasNames = std::is_enum_v<T> && requires {
  names_of(std::type_identity<T>{});
};

template <HasNames Enum>
std::string enum_text(Enum wanted) {
  for (const auto& [value, name] : names_of(std::type_identity<Enum>{})) {
    if (value == wanted) return std::string(name);
  }
  return {};
}

/// Errors: `kind` ("expected one of inside, outside, got 'x'").
template <HasNames Enum>
Result<Enum> parse_enum(std::string_view wanted, Kind kind = Kind::corrupt) {
  std::vector<std::string> known;
  for (const auto& [value, name] : names_of(std::type_identity<Enum>{})) {
    if (name == wanted) return value;
    known.emplace_back(name);
  }
  return make_error(kind, "expected one of " + join(known, ", ") + ", got " + quote(wanted));
}

}  // namespace berth
