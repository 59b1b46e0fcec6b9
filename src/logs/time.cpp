// SPDX-License-Identifier: Apache-2.0
#include "logs/time.hpp"

#include <chrono>

#include "base/time.hpp"

namespace berth::logs {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool has_shape(std::string_view text) {
  if (text.size() < kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == 'd' ? !is_digit(text[i]) : text[i] != kShape[i]) return false;
  }
  return true;
}

int64_t number(std::string_view digits) {
  int64_t value = 0;
  for (char c : digits) value = value * 10 + (c - '0');
  return value;
}

/// ".5Z", ".000000007Z", "Z" → nanoseconds
std::optional<int64_t> fraction(std::string_view text) {
  if (!text.ends_with('Z')) return std::nullopt;
  text.remove_suffix(1);
  if (text.empty()) return 0;
  if (text[0] != '.' || text.size() < 2 || text.size() > 10) return std::nullopt;
  text.remove_prefix(1);
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
  }
  int64_t value = number(text);
  for (size_t digits = text.size(); digits < 9; ++digits) value *= 10;
  return value;
}

}  // namespace

std::string time_text(int64_t time_ns) {
  int64_t seconds = time_ns / kSecond;
  int64_t rest = time_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return format_time(seconds, static_cast<uint32_t>(rest));
}

std::optional<int64_t> parse_time_text(std::string_view text) {
  if (!has_shape(text)) return std::nullopt;
  auto rest = fraction(text.substr(kShape.size()));
  if (!rest) return std::nullopt;
  using namespace std::chrono;
  year_month_day date(year(static_cast<int>(number(text.substr(0, 4)))),
                      month(static_cast<unsigned>(number(text.substr(5, 2)))),
                      day(static_cast<unsigned>(number(text.substr(8, 2)))));
  int64_t hour = number(text.substr(11, 2));
  int64_t minute = number(text.substr(14, 2));
  int64_t second = number(text.substr(17, 2));
  // Nanoseconds in 64 bits end in 2262.
  if (!date.ok() || date.year() < year(1678) || date.year() > year(2261)) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  int64_t days = sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * kSecond + *rest;
}

}  // namespace berth::logs
