// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::engine {

/// Parses docker's --since and --until: a duration before `now` ("10m", "1h30m", "1.5s"), seconds
/// since 1970 ("1700000000", "1700000000.5"), RFC 3339, or its beginning without a zone
/// ("2026-11-21T10:00", "2026-11-21") in local time. `now` and the result are nanoseconds since
/// 1970. Nothing for other text.
std::optional<int64_t> parse_moment(std::string_view text, int64_t now);

/// The current time: nanoseconds since 1970.
int64_t nanoseconds_now();

}  // namespace berth::engine
