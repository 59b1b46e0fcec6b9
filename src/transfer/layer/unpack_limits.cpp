// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "transfer/layer/unpack_options.hpp"

namespace berth::transfer {

Result<UnpackLimits> UnpackLimits::changed_by(std::string_view text) const {
  UnpackLimits limits = *this;
  for (std::string_view part : split(text, ',')) {
    if (trim(part).empty()) continue;
    size_t equals = part.find('=');
    std::string_view name = trim(part.substr(0, equals));
    std::string_view value = equals == part.npos ? "" : trim(part.substr(equals + 1));
    uint64_t number = parse_bytes(value).value_or(0);
    uint64_t* chosen = name == "entries"  ? &limits.entries
                       : name == "bytes"  ? &limits.bytes
                       : name == "ratio"  ? &limits.ratio
                       : name == "depth"  ? &limits.path_depth
                       : name == "memory" ? &limits.tree_bytes
                                          : nullptr;
    if (chosen == nullptr || number == 0) {
      return make_error(Kind::usage,
                        "BERTH_UNPACK_LIMITS: expected NAME=NUMBER with a name of "
                        "entries, bytes, ratio, depth, memory, got " +
                            quote(part));
    }
    *chosen = number;
  }
  return limits;
}

}  // namespace berth::transfer
