// SPDX-License-Identifier: Apache-2.0
#include "engine/context/time.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "base/time.hpp"

using namespace berth::engine;
using berth::kNanosecondsPerSecond;

namespace {

constexpr int64_t kNow = 1'700'000'000 * kNanosecondsPerSecond;

TEST(Moment, durations_lie_before_now) {
  EXPECT_EQ(parse_moment("10m", kNow), kNow - 600 * kNanosecondsPerSecond);
  EXPECT_EQ(parse_moment("1h30m", kNow), kNow - 5400 * kNanosecondsPerSecond);
  EXPECT_EQ(parse_moment("1.5s", kNow), kNow - 1'500'000'000);
  EXPECT_EQ(parse_moment("20ms", kNow), kNow - 20'000'000);
}

TEST(Moment, seconds_since_1970) {
  EXPECT_EQ(parse_moment("1600000000", kNow), 1'600'000'000 * kNanosecondsPerSecond);
  EXPECT_EQ(parse_moment("1600000000.25", kNow),
            1'600'000'000 * kNanosecondsPerSecond + 250'000'000);
  EXPECT_EQ(parse_moment("0", kNow), 0);
}

TEST(Moment, dates_with_their_zone) {
  EXPECT_EQ(parse_moment("2023-11-14T22:13:20Z", 0), kNow);
  EXPECT_EQ(parse_moment("2023-11-14T23:13:20+01:00", 0), kNow);
  EXPECT_EQ(parse_moment("2023-11-14T22:13:20.5Z", 0), kNow + kNanosecondsPerSecond / 2);
}

TEST(Moment, dates_without_a_zone_are_of_this_machine) {
  ::setenv("TZ", "XXX-2", 1);  // two hours east, without any file
  ::tzset();
  EXPECT_EQ(parse_moment("2023-11-15T00:13:20", 0), kNow);
  EXPECT_EQ(parse_moment("2023-11-15T00:13", 0), kNow - 20 * kNanosecondsPerSecond);
  EXPECT_EQ(parse_moment("2023-11-15", 0), kNow - (13 * 60 + 20) * kNanosecondsPerSecond);
  ::unsetenv("TZ");
  ::tzset();
}

TEST(Moment, nothing_for_other_text) {
  for (const char* text :
       {"", "yesterday", "10 m", "m", "1x", "1.2.3s", "2023-13-01", "-5m", "99999999999999999999h",
        "9999999999999h", "2023-11-14T", "1970-01-01x", "5.m5", "18446744073709551616"}) {
    EXPECT_EQ(parse_moment(text, kNow), std::nullopt) << text;
  }
}

}  // namespace
