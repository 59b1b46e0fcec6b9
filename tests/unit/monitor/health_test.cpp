// SPDX-License-Identifier: Apache-2.0
#include "monitor/health.hpp"

#include <gtest/gtest.h>

namespace berth::monitor {
namespace {

using namespace std::chrono_literals;
using Status = HealthState::Status;

const HealthCheck kCheck{{"true"}, 30s, 30s, 10s, 3};

TEST(HealthState, one_success_is_healthy) {
  HealthState state;
  state.add({0, 0, 0, ""}, kCheck, 0s);
  EXPECT_EQ(state.status, Status::healthy);
}

TEST(HealthState, so_many_failures_in_a_row_are_unhealthy) {
  HealthState state;
  for (int i = 0; i < 2; ++i) state.add({0, 0, 1, ""}, kCheck, 60s);
  EXPECT_EQ(state.status, Status::starting);
  state.add({0, 0, -1, ""}, kCheck, 60s);
  EXPECT_EQ(state.status, Status::unhealthy);
  EXPECT_EQ(state.failing_streak, 3);
  state.add({0, 0, 0, ""}, kCheck, 60s);
  EXPECT_EQ(state.status, Status::healthy);
  EXPECT_EQ(state.failing_streak, 0);
}

TEST(HealthState, failures_of_the_start_period_count_only_after_a_success) {
  HealthState state;
  for (int i = 0; i < 9; ++i) state.add({0, 0, 1, ""}, kCheck, 9s);
  EXPECT_EQ(state.failing_streak, 0);
  state.add({0, 0, 0, ""}, kCheck, 9s);
  for (int i = 0; i < 3; ++i) state.add({0, 0, 1, ""}, kCheck, 9s);
  EXPECT_EQ(state.status, Status::unhealthy);
}

TEST(HealthState, keeps_the_last_five_results) {
  HealthState state;
  for (int i = 0; i < 8; ++i) state.add({i, i, i, ""}, kCheck, 60s);
  ASSERT_EQ(state.log.size(), 5U);
  EXPECT_EQ(state.log.front().exit_code, 3);
  EXPECT_EQ(state.log.back().exit_code, 7);
}

TEST(HealthState, is_written_as_docker_shows_it) {
  HealthState state;
  state.add({1'795'176'000'000'000'007, 1'795'176'001'000'000'000, 0, "fine\n"}, kCheck, 0s);
  EXPECT_EQ(state.text(),
            "{\"Status\":\"healthy\",\"FailingStreak\":0,\"Log\":[{"
            "\"Start\":\"2026-11-20T12:00:00.000000007Z\","
            "\"End\":\"2026-11-20T12:00:01.000000000Z\",\"ExitCode\":0,\"Output\":\"fine\\n\"}]}");
}

TEST(HealthCheck, what_makes_no_sense_is_no_check) {
  EXPECT_TRUE(parse_health_check(
      R"({"Test":["true"],"Interval":1,"Timeout":1,"StartPeriod":0,"Retries":1})"));
  for (const char* text : {"", "[]", "{}", R"({"Test":[],"Interval":1,"Timeout":1,"Retries":1})",
                           R"({"Test":[1],"Interval":1,"Timeout":1,"Retries":1})",
                           R"({"Test":["true"],"Interval":0,"Timeout":1,"Retries":1})",
                           R"({"Test":["true"],"Interval":1,"Timeout":1,"Retries":-1})"}) {
    EXPECT_FALSE(parse_health_check(text)) << text;
  }
}

}  // namespace
}  // namespace berth::monitor
