// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// "2026-11-20T12:00:00.5Z", "2026-11-20T12:00:00+02:00" → seconds since 1970; nothing for any
/// other string. RFC 3339; fractions are cut off.
std::optional<int64_t> parse_time(std::string_view text);

/// Seconds since 1970 → "2026-11-20T12:00:00Z".
std::string format_time(int64_t seconds);

/// Parses docker's --since and --until: a duration before `now` ("10m", "1h30m", "1.5s"), seconds
/// since 1970 ("1700000000", "1700000000.5"), RFC 3339, or the beginning of an RFC 3339 time
/// without a zone ("2026-11-21T10:00", "2026-11-21"), in local time. `now` and the result are
/// nanoseconds since 1970. Nothing for any other string.
std::optional<int64_t> parse_moment(std::string_view text, int64_t now);

/// The current time: nanoseconds since 1970.
int64_t nanoseconds_now();

/// SOURCE_DATE_EPOCH: the time, in seconds since 1970, to record in everything that is written now,
/// so that equal content gives an equal digest on any day. Errors: usage (not a number below 2^32).
/// Source: reproducible-builds.org, "SOURCE_DATE_EPOCH specification".
Result<std::optional<uint64_t>> source_date(const Environment& environment);

}  // namespace berth::engine
