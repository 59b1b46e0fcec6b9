// SPDX-License-Identifier: Apache-2.0
#include "oci/user.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::oci {
namespace {

using testing::ElementsAre;

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n"
    "broken line\n"
    "1000:x:0:0:a number as a name::/bin/sh\n"
    "ada:x:1000:100:Ada:/home/ada:/bin/sh\n"
    "huge:x:4294967296:1::/:/bin/sh\n";
constexpr const char* kGroup =
    "root:x:0:\n"
    "users:x:100:\n"
    "video:x:44:ada,bob\n"
    "render:x:107:bob,ada\n";

TEST(ResolveUser, gives_root_when_nothing_is_asked_for) {
  auto user = resolve_user("", kPasswd, kGroup);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 0U);
  EXPECT_EQ(user->gid, 0U);
  EXPECT_EQ(user->home, "/root");
}

TEST(ResolveUser, works_without_any_account_file) {
  auto user = resolve_user("", "", "");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 0U);
  EXPECT_EQ(user->home, "/root");
}

TEST(ResolveUser, gives_a_name_its_ids_home_and_groups) {
  auto user = resolve_user("ada", kPasswd, kGroup);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 1000U);
  EXPECT_EQ(user->gid, 100U);
  EXPECT_EQ(user->home, "/home/ada");
  EXPECT_THAT(user->additional_gids, ElementsAre(100, 44, 107));
}

TEST(ResolveUser, takes_a_number_for_an_id_even_where_an_account_has_it_as_its_name) {
  auto user = resolve_user("1000", kPasswd, kGroup);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 1000U);
  EXPECT_EQ(user->gid, 100U);
  EXPECT_THAT(user->additional_gids, ElementsAre(100, 44, 107));
}

TEST(ResolveUser, accepts_an_id_that_nobody_has_with_group_0) {
  auto user = resolve_user("4242", kPasswd, kGroup);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 4242U);
  EXPECT_EQ(user->gid, 0U);
  EXPECT_EQ(user->home, "/");
}

TEST(ResolveUser, drops_supplementary_groups_when_the_group_is_named) {
  for (const char* wish : {"ada:44", "ada:video"}) {
    auto user = resolve_user(wish, kPasswd, kGroup);
    ASSERT_TRUE(user.ok()) << wish;
    EXPECT_EQ(user->uid, 1000U);
    EXPECT_EQ(user->gid, 44U);
    EXPECT_THAT(user->additional_gids, ElementsAre(44));
  }
}

TEST(ResolveUser, refuses_unknown_names) {
  auto user = resolve_user("eve", kPasswd, kGroup);
  ASSERT_FALSE(user.ok());
  EXPECT_EQ(user.error().kind, Kind::not_found);
  EXPECT_EQ(to_line(user.error()),
            "user 'eve' is not in the container's /etc/passwd; try: a numeric id");
  auto group = resolve_user("ada:wheel", kPasswd, kGroup);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(to_line(group.error()),
            "group 'wheel' is not in the container's /etc/group; try: a numeric id");
}

TEST(ResolveUser, refuses_other_forms_and_ids_that_the_kernel_does_not_have) {
  for (const char* wish :
       {"ada:", "ada:44:1", "2147483648", "99999999999999999999", "0:2147483648"}) {
    auto user = resolve_user(wish, kPasswd, kGroup);
    ASSERT_FALSE(user.ok()) << wish;
    EXPECT_EQ(user.error().kind, Kind::usage) << wish;
  }
  // Signs and blanks make no number.
  for (const char* wish : {"-1", "+5", " 5", "5 ", "0x10"}) {
    auto user = resolve_user(wish, kPasswd, kGroup);
    ASSERT_FALSE(user.ok()) << wish;
    EXPECT_EQ(user.error().kind, Kind::not_found) << wish;
  }
}

}  // namespace
}  // namespace berth::oci
