// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace berth {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

/// A time in UTC in the format of RFC 3339: "2026-11-20T12:00:00Z", with `nanoseconds` (below 10^9)
/// "2026-11-20T12:00:00.000000250Z". `seconds` since 1970 may be negative. Does not use gmtime(3),
/// which would read the time zone file of the machine.
std::string format_time(int64_t seconds, std::optional<uint32_t> nanoseconds = {});

}  // namespace berth
