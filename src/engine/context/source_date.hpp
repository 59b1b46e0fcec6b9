// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// SOURCE_DATE_EPOCH: the time, in seconds since 1970, to record in everything that is written now,
/// so that equal content gives an equal digest on any day. Errors: usage (not a number below 2^32).
/// Source: reproducible-builds.org, "SOURCE_DATE_EPOCH specification".
Result<std::optional<uint64_t>> source_date(const Environment& environment);

}  // namespace berth::engine
