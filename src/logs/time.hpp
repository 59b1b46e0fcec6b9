// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::logs {

/// "2026-11-20T12:00:00.000000007Z", always with nine digits; `time_ns` since 1970. Pure.
std::string time_text(int64_t time_ns);

/// Parses such a time, with zero to nine digits after the point. Nothing for other text, including
/// other time zones.
std::optional<int64_t> parse_time_text(std::string_view text);

}  // namespace berth::logs
