// SPDX-License-Identifier: Apache-2.0
#include "engine/request/keep_id.hpp"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using Lines = std::vector<std::string>;

Lines swapped(const std::vector<sys::IdRange>& here, uint32_t kept) {
  Lines lines;
  for (const oci::IdMapping& one : swap_with_root(here, kept)) {
    lines.push_back(std::to_string(one.container_id) + " " + std::to_string(one.host_id) + " " +
                    std::to_string(one.size));
  }
  return lines;
}

TEST(SwapWithRoot, exchanges_the_caller_with_root_and_leaves_the_others) {
  EXPECT_EQ(swapped({{0, 1000, 1}, {1, 700000, 65536}}, 1000),
            (Lines{"1000 0 1", "0 1000 1", "1 1 999", "1001 1001 64536"}));
}

TEST(SwapWithRoot, takes_the_last_id_for_root_where_the_number_is_beyond) {
  EXPECT_EQ(swapped({{0, 1000, 1}, {1, 700000, 10}}, 70000),
            (Lines{"70000 0 1", "0 10 1", "1 1 9"}));
}

TEST(SwapWithRoot, has_a_single_line_for_a_single_id) {
  EXPECT_EQ(swapped({{0, 1000, 1}}, 1000), Lines{"1000 0 1"});
  EXPECT_EQ(swapped({{0, 1000, 1}}, 0), Lines{"0 0 1"});
}

TEST(SwapWithRoot, changes_nothing_for_root_itself_nor_at_the_edges_of_ranges) {
  EXPECT_EQ(swapped({{0, 1000, 1}, {1, 700000, 4}}, 0), (Lines{"0 0 1", "1 1 4"}));
  EXPECT_EQ(swapped({{0, 1000, 1}, {1, 700000, 4}}, 4), (Lines{"4 0 1", "0 4 1", "1 1 3"}));
  EXPECT_EQ(swapped({{0, 1000, 1}, {1, 700000, 4}}, 1), (Lines{"1 0 1", "0 1 1", "2 2 3"}));
}

KeptIds alice() {
  KeptIds ids;
  ids.uid = ids.gid = 1000;
  ids.name = "alice";
  return ids;
}

TEST(WithAccount, adds_a_line_for_a_number_that_has_none) {
  EXPECT_EQ(with_account("root:x:0:0::/root:/bin/sh", alice(), "/work"),
            "root:x:0:0::/root:/bin/sh\nalice:*:1000:1000:alice:/work:/bin/sh\n");
  EXPECT_EQ(with_group("root:x:0:\n", alice()), "root:x:0:\nalice:x:1000:\n");
}

TEST(WithAccount, leaves_what_the_image_says_of_the_number) {
  std::string passwd = "node:x:1000:1000::/home/node:/bin/sh\n";
  EXPECT_EQ(with_account(passwd, alice(), "/"), passwd);
  EXPECT_EQ(with_group("node:x:1000:\n", alice()), "node:x:1000:\n");
  EXPECT_EQ(with_account("", alice(), "/"), "");
}

TEST(WithAccount, gives_nobody_the_name_of_another) {
  EXPECT_EQ(with_account("alice:x:5:5::/:/bin/sh\n", alice(), "/"),
            "alice:x:5:5::/:/bin/sh\nuser1000:*:1000:1000:user1000:/:/bin/sh\n");
}

}  // namespace
}  // namespace berth::engine
