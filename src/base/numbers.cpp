// SPDX-License-Identifier: Apache-2.0
#include "base/numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/text.hpp"

namespace berth {
namespace {

constexpr uint64_t kMostNumbers = 65536;

}  // namespace

std::optional<Numbers> parse_numbers(std::string_view text) {
  Numbers numbers;
  for (std::string_view one : split(trim(text), ',')) {
    std::string_view part = trim(one);
    size_t dash = std::min(part.find('-'), part.size());
    auto first = parse_u64(part.substr(0, dash));
    auto last = dash == part.size() ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMostNumbers) return std::nullopt;
    for (uint64_t n = *first; n <= *last; ++n) numbers.insert(static_cast<unsigned>(n));
  }
  return numbers;
}

std::string to_text(const Numbers& numbers) {
  std::string text;
  for (auto one = numbers.begin(); one != numbers.end();) {
    auto last = one;
    while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(*one);
    if (last != one) text += "-" + std::to_string(*last);
    one = std::next(last);
  }
  return text;
}

}  // namespace berth
