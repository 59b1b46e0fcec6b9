// SPDX-License-Identifier: Apache-2.0
#include "sys/file/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "sys/file/remove_tree.hpp"

namespace berth::sys {
namespace {

TempDir make_temp() {
  Fd base = *open_at(cwd(), ::testing::TempDir(), O_RDONLY | O_DIRECTORY);
  return *TempDir::make(base, "sys-");
}

TEST(Files, replace_leaves_no_temporary_behind) {
  TempDir temp = make_temp();
  ASSERT_TRUE(replace_file(temp.fd(), "a", "one").ok());
  ASSERT_TRUE(replace_file(temp.fd(), "a", "two", 0600, Sync::yes).ok());
  EXPECT_EQ(*read_file(temp.fd(), "a"), "two");
  ASSERT_TRUE(make_directory(temp.fd(), "d").ok());
  EXPECT_FALSE(replace_file(temp.fd(), "d", "three").ok());
  EXPECT_EQ(*list_directory(temp.fd(), "."), (std::vector<std::string>{"a", "d"}));
}

TEST(Files, read_refuses_more_than_its_limit) {
  TempDir temp = make_temp();
  ASSERT_TRUE(write_file(temp.fd(), "big", std::string(101, 'x')).ok());
  EXPECT_EQ(to_line(read_file(temp.fd(), "big", 100).error()), "read 'big': larger than 100 bytes");
}

TEST(Files, absence_is_a_value_where_the_name_says_so) {
  TempDir temp = make_temp();
  EXPECT_FALSE(read_file_if_exists(temp.fd(), "none")->has_value());
  EXPECT_EQ(to_line(read_file(temp.fd(), "none").error()),
            "open 'none': No such file or directory");
}

TEST(Files, remove_tree_follows_no_link_and_opens_locked_directories) {
  TempDir temp = make_temp();
  ASSERT_TRUE(make_directories(temp.fd(), "keep/inner").ok());
  ASSERT_TRUE(make_directories(temp.fd(), "tree/locked/below").ok());
  ASSERT_TRUE(make_symlink("../keep", temp.fd(), "tree/link").ok());
  ASSERT_EQ(::fchmodat(temp.fd().get(), "tree/locked", 0, 0), 0);
  ASSERT_TRUE(remove_tree(temp.fd(), "tree").ok());
  EXPECT_EQ(*list_directory(temp.fd(), "."), (std::vector<std::string>{"keep"}));
  EXPECT_EQ(*list_directory(temp.fd(), "keep"), (std::vector<std::string>{"inner"}));
  EXPECT_TRUE(remove_tree(temp.fd(), "tree").ok());
}

TEST(Files, remove_tree_removes_what_is_deeper_than_there_are_descriptors) {
  TempDir temp = make_temp();
  ASSERT_TRUE(make_directory(temp.fd(), "tree").ok());
  ASSERT_TRUE(make_directory(temp.fd(), "tree/.moved-up-0").ok());  // a name that we would take
  ASSERT_TRUE(write_file(temp.fd(), "tree/.moved-up-0/kept", "").ok());
  for (const char* start : {"tree", "tree/.moved-up-0"}) {
    Fd here = *open_at(temp.fd(), start, O_RDONLY | O_DIRECTORY);
    for (int depth = 0; depth < 5000; ++depth) {
      ASSERT_TRUE(make_directory(here, "d").ok());
      ASSERT_TRUE(write_file(here, "f", "").ok());
      here = *open_at(here, "d", O_RDONLY | O_DIRECTORY);
    }
    ASSERT_EQ(::fchmod(here.get(), 0500), 0);
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto removed = remove_tree(temp.fd(), "tree");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(removed.ok()) << to_line(removed.error()).substr(0, 200);
  EXPECT_TRUE(list_directory(temp.fd(), ".")->empty());
}

TEST(Files, a_lock_goes_with_its_owner) {
  TempDir temp = make_temp();
  Fd one = *open_at(temp.fd(), "lock", O_RDWR | O_CREAT, 0600);
  Fd two = *open_at(temp.fd(), "lock", O_RDWR);
  EXPECT_TRUE(*try_lock(one, LockMode::exclusive, "lock"));
  EXPECT_FALSE(*try_lock(two, LockMode::exclusive, "lock"));
  one.reset();
  EXPECT_TRUE(*try_lock(two, LockMode::exclusive, "lock"));
}

}  // namespace
}  // namespace berth::sys
