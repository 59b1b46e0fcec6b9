// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/part_reader.hpp"

#include "base/text.hpp"

namespace berth::transfer {

std::optional<uint64_t> parse_content_range_start(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  return parse_u64(value.substr(0, value.find('-')));
}

}  // namespace berth::transfer
