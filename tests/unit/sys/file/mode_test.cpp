// SPDX-License-Identifier: Apache-2.0
#include "sys/file/mode.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <utility>

#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::sys {
namespace {

class Handles : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(dir(), "file", "text", 0600).ok());
    ASSERT_TRUE(make_symlink("file", dir(), "link").ok());
    ASSERT_TRUE(make_node(dir(), "fifo", S_IFIFO | 0600, 0, 0).ok());
  }
  const Fd& dir() const { return place_.fd(); }
  struct stat look(const std::string& name) {
    return **stat_entry(dir(), name);
  }

  Fd base_ = open_at(cwd(), "/tmp", O_RDONLY | O_DIRECTORY).value();
  TempDir place_ = TempDir::make(base_, "berth-mode-").value();
};

TEST_F(Handles, change_what_they_are_of_and_no_links_target) {
  for (const char* name : {"file", "fifo", "link"}) {
    Fd held = hold_entry(dir(), name).value();
    EXPECT_TRUE(set_modified(held, {1'000'000'000, 5}, name).ok()) << name;
    EXPECT_EQ(look(name).st_mtim.tv_sec, 1'000'000'000) << name;
    EXPECT_EQ(look(name).st_mtim.tv_nsec, 5) << name;
    EXPECT_TRUE(change_owner(held, ::geteuid(), ::getegid(), name).ok()) << name;
    bool can = look(name).st_mode != look("link").st_mode;
    EXPECT_EQ(change_mode(held, 0640, name).ok(), can) << name;
  }
  EXPECT_EQ(look("fifo").st_mode & 07777, 0640u);
  EXPECT_EQ(look("file").st_mode & 07777, 0640u);
}

TEST_F(Handles, are_of_what_was_made_or_of_nothing) {
  EXPECT_TRUE(hold_made(dir(), "fifo", S_IFIFO).ok());
  for (auto [name, type] : {std::pair("link", S_IFREG), {"link", S_IFIFO}, {"file", S_IFLNK}}) {
    auto held = hold_made(dir(), name, type);
    ASSERT_FALSE(held.ok());
    EXPECT_EQ(held.error().kind, Kind::busy);
  }
  Fd dev = open_at(cwd(), "/dev", O_PATH | O_DIRECTORY).value();
  EXPECT_TRUE(hold_made(dev, "null", S_IFCHR, makedev(1, 3)).ok());
  EXPECT_FALSE(hold_made(dev, "null", S_IFCHR, makedev(1, 5)).ok());
}

TEST_F(Handles, open_regular_files_alone) {
  EXPECT_TRUE(find_regular(dir(), "file")->has_value());
  for (const char* name : {"link", "fifo", "nothing", "file/below", "."}) {
    auto found = find_regular(dir(), name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_FALSE(found->has_value()) << name;
  }
  EXPECT_EQ(*read_regular_in_root(dir(), "/link", 100), "text");
  EXPECT_EQ(*read_regular_in_root(dir(), "/fifo", 100), std::nullopt);
  EXPECT_FALSE(read_regular_in_root(dir(), "/file", 3).ok());
}

}  // namespace
}  // namespace berth::sys
