// SPDX-License-Identifier: Apache-2.0
#include "base/time.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(FormatTime, is_rfc_3339_in_utc) {
  EXPECT_EQ(format_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_time(1'795'262'399), "2026-11-21T11:59:59Z");
  EXPECT_EQ(format_time(951'782'400), "2000-02-29T00:00:00Z");
}

TEST(FormatTime, reaches_back_to_the_year_1) {
  EXPECT_EQ(format_time(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(format_time(-62'135'596'800), "0001-01-01T00:00:00Z");
}

TEST(FormatTime, has_nine_digits_of_a_second) {
  EXPECT_EQ(format_time(0, 0), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(format_time(0, 250), "1970-01-01T00:00:00.000000250Z");
}

}  // namespace
}  // namespace berth
