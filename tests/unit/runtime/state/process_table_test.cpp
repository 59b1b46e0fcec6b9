// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/process_table.hpp"

#include <gtest/gtest.h>

namespace berth::runtime {
namespace {

TEST(ProcessTable, keeps_the_heading_and_the_rows_of_the_container) {
  std::string table =
      "UID   PID  PPID CMD\n"
      "root    1     0 init 7\n"
      "root    7     1 sleep 1\n"
      "root   17     1 other\n";
  EXPECT_EQ(*rows_of(table, {7, 99}), "UID   PID  PPID CMD\nroot    7     1 sleep 1\n");
  EXPECT_EQ(*rows_of(table, {}), "UID   PID  PPID CMD\n");
}

TEST(ProcessTable, short_and_odd_rows_are_nobodys) {
  EXPECT_EQ(*rows_of("TTY PID\n?\n? x\n? 5", {5}), "TTY PID\n? 5\n");
}

TEST(ProcessTable, needs_a_column_of_ids) {
  EXPECT_EQ(to_line(rows_of("COMMAND\nsleep\n", {1}).error()),
            "find the column PID in the output of ps");
  EXPECT_FALSE(rows_of("", {1}).ok());
}

}  // namespace
}  // namespace berth::runtime
