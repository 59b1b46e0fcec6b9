// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// SOURCE_DATE_EPOCH: the time, in seconds since 1970, that what is written now is said to be of,
/// so that the same content gives the same digest on any day. Errors: usage (it is no number below
/// 2^32). Source: reproducible-builds.org, "SOURCE_DATE_EPOCH specification".
Result<std::optional<uint64_t>> source_date(const Environment& environment);

}  // namespace berth::engine
