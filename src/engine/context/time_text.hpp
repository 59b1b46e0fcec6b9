// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::engine {

/// "2026-11-20T12:00:00.5Z", "2026-11-20T12:00:00+02:00" → seconds since 1970; nothing for other
/// text. RFC 3339; fractions are cut.
std::optional<int64_t> parse_time(std::string_view text);

/// Seconds since 1970 → "2026-11-20T12:00:00Z".
std::string format_time(int64_t seconds);

}  // namespace berth::engine
