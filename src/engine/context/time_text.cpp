// SPDX-License-Identifier: Apache-2.0
#include "engine/context/time_text.hpp"

#include <array>
#include <cstdio>
#include <ctime>

#include "base/text.hpp"

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

}  // namespace berth::engine
