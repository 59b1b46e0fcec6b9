// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::engine {

/// What docker takes for --since and --until: a duration before `now` ("10m", "1h30m", "1.5s"),
/// seconds since 1970 ("1700000000", "1700000000.5"), RFC 3339 with or without its zone, or a part
/// of it ("2026-11-21T10:00", "2026-11-21"), which is then this machine's time. Both times are
/// nanoseconds since 1970. Nothing for other text.
std::optional<int64_t> parse_moment(std::string_view text, int64_t now);

/// The time of this machine's clock: nanoseconds since 1970.
int64_t nanoseconds_now();

}  // namespace berth::engine
