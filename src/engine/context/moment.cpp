// SPDX-License-Identifier: Apache-2.0
#include "engine/context/moment.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/context/time_text.hpp"

namespace berth::engine {
namespace {

constexpr uint64_t kMostSeconds = INT64_MAX / kNanosecondsPerSecond;

/// "5" → 500000000: the digits behind a decimal point as nanoseconds; more than nine are cut.
std::optional<int64_t> parse_fraction(std::string_view digits) {
  std::string nine(digits.substr(0, 9));
  nine.resize(9, '0');
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  return parse_i64(nine);
}

std::optional<int64_t> unit_of(std::string_view name) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"h", 3600 * kNanosecondsPerSecond},
                                                             {"m", 60 * kNanosecondsPerSecond},
                                                             {"s", kNanosecondsPerSecond},
                                                             {"ms", 1'000'000},
                                                             {"us", 1'000},
                                                             {"µs", 1'000},
                                                             {"ns", 1}};
  for (const auto& [unit, length] : kUnits) {
    if (unit == name) return length;
  }
  return std::nullopt;
}

/// "1h2m3.5s" → nanoseconds, as Go parses it.
std::optional<int64_t> parse_go_duration(std::string_view text) {
  int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    size_t digits = text.find_first_not_of("0123456789.");
    if (digits == 0 || digits == text.npos) return std::nullopt;
    size_t end = std::min(text.find_first_of("0123456789.", digits), text.size());
    std::string_view number = text.substr(0, digits);
    auto unit = unit_of(text.substr(digits, end - digits));
    size_t point = number.find('.');
    auto whole = point == 0 ? std::optional<uint64_t>(0) : parse_u64(number.substr(0, point));
    auto part = point == number.npos ? 0 : parse_fraction(number.substr(point + 1));
    if (!unit || !whole || !part) return std::nullopt;
    __int128 length = __int128{static_cast<int64_t>(*whole)} * *unit +
                      __int128{*part} * *unit / kNanosecondsPerSecond;
    if (*whole > uint64_t{INT64_MAX} || length + total > INT64_MAX) return std::nullopt;
    total += static_cast<int64_t>(length);
    text.remove_prefix(end);
  }
  return total;
}

std::optional<int64_t> parse_unix(std::string_view text) {
  size_t point = text.find('.');
  auto seconds = parse_u64(text.substr(0, point));
  auto part = point == text.npos ? 0 : parse_fraction(text.substr(point + 1));
  if (!seconds || *seconds >= kMostSeconds || !part) return std::nullopt;
  return static_cast<int64_t>(*seconds) * kNanosecondsPerSecond + *part;
}

/// RFC 3339; the zone may be missing, and then the seconds or the time of day too.
std::optional<int64_t> parse_date(std::string_view text) {
  std::string whole(text);
  if (whole.size() == 10) whole += "T00:00";
  if (whole.size() == 16) whole += ":00";
  int64_t part = 0;
  if (size_t point = whole.find('.'); point != whole.npos) {
    size_t end = std::min(whole.find_first_not_of("0123456789", point + 1), whole.size());
    auto fraction = parse_fraction(std::string_view(whole).substr(point + 1, end - point - 1));
    if (!fraction) return std::nullopt;
    part = *fraction;
    whole.erase(point, end - point);
  }
  bool zoned = whole.size() > 19;
  auto seconds = parse_time(zoned ? whole : whole + "Z");
  if (!seconds) return std::nullopt;
  if (!zoned) {
    // Local time: parsed as if it were UTC, split into its fields, and converted in the local zone.
    std::time_t time = *seconds;
    std::tm parts{};
    if (::gmtime_r(&time, &parts) == nullptr) return std::nullopt;
    parts.tm_isdst = -1;
    seconds = static_cast<int64_t>(::mktime(&parts));
  }
  if (*seconds < 0 || static_cast<uint64_t>(*seconds) >= kMostSeconds) return std::nullopt;
  return *seconds * kNanosecondsPerSecond + part;
}

}  // namespace

std::optional<int64_t> parse_moment(std::string_view text, int64_t now) {
  if (auto duration = parse_go_duration(text)) return now - *duration;
  if (auto moment = parse_unix(text)) return moment;
  return parse_date(text);
}

int64_t nanoseconds_now() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace berth::engine
