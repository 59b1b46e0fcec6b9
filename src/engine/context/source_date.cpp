// SPDX-License-Identifier: Apache-2.0
#include "engine/context/source_date.hpp"

#include "base/text.hpp"

namespace berth::engine {

Result<std::optional<uint64_t>> source_date(const Environment& environment) {
  auto text = environment.get_filled("SOURCE_DATE_EPOCH");
  if (!text) return std::optional<uint64_t>();
  auto seconds = parse_u64(*text);
  if (seconds && *seconds < uint64_t{1} << 32) return std::optional<uint64_t>(*seconds);
  return make_error(Kind::usage, "SOURCE_DATE_EPOCH: expected seconds, got " + quote(*text));
}

}  // namespace berth::engine
