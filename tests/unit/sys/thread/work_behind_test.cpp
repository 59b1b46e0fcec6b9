// SPDX-License-Identifier: Apache-2.0
#include "sys/thread/work_behind.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace berth::sys {
namespace {

using namespace std::chrono_literals;

Result<void> nothing() {
  return {};
}

TEST(WorkBehind, goes_on_while_its_owner_does) {
  std::atomic<int> step = 0;
  WorkBehind behind(1);
  ASSERT_TRUE(behind.begin([&]() -> Result<void> {
    while (step != 1) std::this_thread::yield();
    step = 2;
    return {};
  }));
  step = 1;
  ASSERT_TRUE(behind.wait().ok());
  EXPECT_EQ(step, 2);
}

TEST(WorkBehind, does_one_thing_after_the_other) {
  std::string done;
  WorkBehind behind(100);
  for (char c = 'a'; c <= 'z'; ++c) {
    ASSERT_TRUE(behind.begin([&done, c]() -> Result<void> {
      done += c;
      return {};
    }));
  }
  ASSERT_TRUE(behind.wait().ok());
  EXPECT_EQ(done, "abcdefghijklmnopqrstuvwxyz");
}

TEST(WorkBehind, takes_no_more_than_its_depth) {
  std::atomic<bool> go_on = false;
  WorkBehind behind(2);
  auto waits = [&]() -> Result<void> {
    while (!go_on) std::this_thread::yield();
    return {};
  };
  EXPECT_TRUE(behind.begin(waits));
  EXPECT_TRUE(behind.begin(nothing));
  EXPECT_FALSE(behind.begin(nothing));
  go_on = true;
  ASSERT_TRUE(behind.wait().ok());
  EXPECT_TRUE(behind.begin(nothing));
}

TEST(WorkBehind, tells_the_first_error_once_and_does_the_rest) {
  WorkBehind behind(10);
  bool done = false;
  behind.begin([]() -> Result<void> { return make_error(Kind::io, "one"); });
  behind.begin([]() -> Result<void> { return make_error(Kind::io, "two"); });
  behind.begin([&]() -> Result<void> {
    done = true;
    return {};
  });
  Result<void> outcome = behind.wait();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(to_line(outcome.error()), "one");
  EXPECT_TRUE(done);
  EXPECT_TRUE(behind.wait().ok());
}

TEST(WorkBehind, has_done_what_was_begun_before_it_is_gone) {
  bool done = false;
  {
    WorkBehind behind(1);
    behind.begin([&]() -> Result<void> {
      std::this_thread::sleep_for(20ms);
      done = true;
      return {};
    });
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace berth::sys
