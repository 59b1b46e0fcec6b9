// SPDX-License-Identifier: Apache-2.0
#include "engine/context/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/text.hpp"
#include "base/time.hpp"

namespace berth::engine {
namespace {

/// The number of `width` digits at `at`, within [low, high].
std::optional<int> number_at(std::string_view text, size_t at, size_t width, int low, int high) {
  if (text.size() < at + width) return std::nullopt;
  auto value = parse_u64(text.substr(at, width));
  if (!value || static_cast<int>(*value) < low || static_cast<int>(*value) > high) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

/// The offset in seconds of "Z", "+02:00", "-08:30".
std::optional<int64_t> parse_zone(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  auto hours = number_at(text, 1, 2, 0, 23);
  auto minutes = number_at(text, 4, 2, 0, 59);
  if (text.size() != 6 || text[3] != ':' || !hours || !minutes) return std::nullopt;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  int64_t offset = *hours * 3600 + *minutes * 60;
  return text[0] == '+' ? offset : -offset;
}

constexpr uint64_t kMostSeconds = INT64_MAX / kNanosecondsPerSecond;

/// "5" → 500000000: the digits behind a decimal point as nanoseconds; digits after the ninth are
/// cut off.
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

/// RFC 3339. The zone may be missing; then the seconds or the whole time of day may be missing,
/// too.
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

std::optional<int64_t> parse_time(std::string_view text) {
  auto year = number_at(text, 0, 4, 0, 9999);
  auto month = number_at(text, 5, 2, 1, 12);
  auto day = number_at(text, 8, 2, 1, 31);
  auto hour = number_at(text, 11, 2, 0, 23);
  auto minute = number_at(text, 14, 2, 0, 59);
  auto second = number_at(text, 17, 2, 0, 60);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  std::string_view zone = text.substr(19);
  if (zone.starts_with('.')) {
    size_t end = zone.find_first_not_of("0123456789", 1);
    if (end == std::string_view::npos || end == 1) return std::nullopt;
    zone.remove_prefix(end);
  }
  auto offset = parse_zone(zone);
  if (!offset) return std::nullopt;
  struct tm parts {};
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *day;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  return static_cast<int64_t>(::timegm(&parts)) - *offset;
}

std::string format_time(int64_t seconds) {
  time_t value = static_cast<time_t>(seconds);
  struct tm parts {};
  ::gmtime_r(&value, &parts);
  std::array<char, 32> text;
  size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text.data(), length);
}

std::optional<int64_t> parse_moment(std::string_view text, int64_t now) {
  if (auto duration = parse_go_duration(text)) return now - *duration;
  if (auto moment = parse_unix(text)) return moment;
  return parse_date(text);
}

int64_t nanoseconds_now() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

Result<std::optional<uint64_t>> source_date(const Environment& environment) {
  auto text = environment.get_filled("SOURCE_DATE_EPOCH");
  if (!text) return std::optional<uint64_t>();
  auto seconds = parse_u64(*text);
  if (seconds && *seconds < uint64_t{1} << 32) return std::optional<uint64_t>(*seconds);
  return make_error(Kind::usage, "SOURCE_DATE_EPOCH: expected seconds, got " + quote(*text));
}

}  // namespace berth::engine
