// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::sys {
namespace {

TEST(Runs, neither_a_zombie_nor_another_process_of_the_same_number) {
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  auto start = process_start_time(child);
  ASSERT_TRUE(start.ok());
  EXPECT_TRUE(runs(child, *start));
  EXPECT_FALSE(runs(child, *start + 1));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(process_start_time(child).ok());
  EXPECT_FALSE(runs(child, *start));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(runs(child, *start));
}

}  // namespace
}  // namespace berth::sys
