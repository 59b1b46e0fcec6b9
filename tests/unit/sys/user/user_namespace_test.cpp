// SPDX-License-Identifier: Apache-2.0
#include "sys/user/user_namespace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sys/user/identity.hpp"

namespace berth::sys {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SubordinateIds, are_found_by_name_and_by_number) {
  EXPECT_THAT(parse_subordinate_ids("a:100:10\nu1:200000:65536\n1001:300000:5\n", "u1", 1001),
              ElementsAre(IdRange{0, 200000, 65536}, IdRange{0, 300000, 5}));
  EXPECT_THAT(parse_subordinate_ids("u10:1:2\n10010:1:2", "u1", 1001), IsEmpty());
  EXPECT_THAT(parse_subordinate_ids("", "u1", 1001), IsEmpty());
}

TEST(SubordinateIds, lines_that_make_no_sense_are_skipped) {
  EXPECT_THAT(parse_subordinate_ids("u1\nu1:\nu1:1\nu1:a:b\nu1:-1:5\nu1:5:0\nu1:1:2:3\n"
                                    "u1:4294967290:10\nu1:99999999999:1\n#u1:1:1\n u1:7:1 \n",
                                    "u1", 1001),
              ElementsAre(IdRange{0, 7, 1}));
}

TEST(SubordinateIds, no_more_are_taken_than_the_kernel_maps) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "u1:" + std::to_string(100000 + 10 * i) + ":10\n";
  EXPECT_EQ(parse_subordinate_ids(text, "u1", 1001).size(), 64u);
}

TEST(IdMapping, of_a_user_nobody_has_heard_of_is_the_single_id) {
  auto mapping = plan_mapping(987654, 876543, "no-such-user");
  ASSERT_TRUE(mapping.ok());
  EXPECT_FALSE(mapping->full());
  EXPECT_THAT(mapping->uids, ElementsAre(IdRange{0, 987654, 1}));
  EXPECT_THAT(mapping->gids, ElementsAre(IdRange{0, 876543, 1}));
}

TEST(Identity, is_who_runs_the_test) {
  auto self = identity();
  ASSERT_TRUE(self.ok());
  EXPECT_EQ(self->uid, getuid());
  EXPECT_EQ(self->effective_gid, getegid());
  EXPECT_EQ(user_name(0), "root");
  EXPECT_EQ(user_name(987654), "");
}

}  // namespace
}  // namespace berth::sys
