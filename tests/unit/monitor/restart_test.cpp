// SPDX-License-Identifier: Apache-2.0
#include "monitor/restart.hpp"

#include <gtest/gtest.h>

namespace berth::monitor {
namespace {

using namespace std::chrono_literals;

bool restarts(const char* policy, std::optional<int> status, int before,
              Stopped stopped = Stopped::no) {
  return is_to_restart(restart_policy(policy), status, before, stopped);
}

TEST(RestartPolicy, starts_again_what_it_says) {
  EXPECT_FALSE(restarts("no", 1, 0));
  EXPECT_FALSE(restarts("nonsense", 1, 0));
  EXPECT_TRUE(restarts("always", 0, 99));
  EXPECT_TRUE(restarts("unless-stopped\n", 0, 0));
  EXPECT_TRUE(restarts("on-failure", 1, 1000));
  EXPECT_TRUE(restarts("on-failure:0", 1, 1000));
  EXPECT_FALSE(restarts("on-failure", 0, 0));
  EXPECT_TRUE(restarts("on-failure", std::nullopt, 0));
}

TEST(RestartPolicy, on_failure_gives_up_after_so_many) {
  EXPECT_TRUE(restarts("on-failure:2", 1, 1));
  EXPECT_FALSE(restarts("on-failure:2", 1, 2));
}

TEST(RestartPolicy, leaves_alone_what_a_person_has_stopped) {
  for (const char* policy : {"always", "unless-stopped", "on-failure"}) {
    EXPECT_FALSE(restarts(policy, 137, 0, Stopped::yes)) << policy;
  }
}

TEST(RestartPolicy, waits_twice_as_long_each_time_and_a_minute_at_most) {
  EXPECT_EQ(next_pause(0ms, 0s), 100ms);
  EXPECT_EQ(next_pause(100ms, 1s), 200ms);
  EXPECT_EQ(next_pause(51200ms, 9s), 60s);
  EXPECT_EQ(next_pause(60s, 9s), 60s);
  EXPECT_EQ(next_pause(60s, 10s), 100ms);
}

}  // namespace
}  // namespace berth::monitor
