// SPDX-License-Identifier: Apache-2.0
#include "base/time.hpp"

#include <array>
#include <chrono>
#include <cstdio>

namespace berth {

std::string format_time(int64_t seconds, std::optional<uint32_t> nanoseconds) {
  using namespace std::chrono;
  sys_seconds time{std::chrono::seconds(seconds)};
  sys_days day = floor<days>(time);
  year_month_day date(day);
  hh_mm_ss clock(time - day);
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  std::string out = text.data();
  if (nanoseconds) {
    std::snprintf(text.data(), text.size(), ".%09u", *nanoseconds);
    out += text.data();
  }
  return out + "Z";
}

}  // namespace berth
