// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount/target.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::runtime {
namespace {

/// A root with an outside beside it, both in one directory.
class Target : public testing::Test {
 protected:
  void SetUp() override {
    auto tmp = sys::open_at(sys::cwd(), testing::TempDir(), O_PATH | O_DIRECTORY);
    ASSERT_TRUE(tmp.ok());
    auto made = sys::TempDir::make(*tmp, "berth-target-");
    ASSERT_TRUE(made.ok());
    base_ = std::move(made).value();
    ASSERT_TRUE(sys::make_directory(base_.fd(), "root").ok());
    ASSERT_TRUE(sys::make_directory(base_.fd(), "outside").ok());
    auto root = sys::open_at(base_.fd(), "root", O_PATH | O_DIRECTORY);
    ASSERT_TRUE(root.ok());
    root_ = std::move(root).value();
  }

  void link(const std::string& text, const std::string& path) {
    ASSERT_TRUE(sys::make_symlink(text, root_, path).ok());
  }
  bool exists(const std::string& path) {
    auto entry = sys::stat_entry(base_.fd(), path);
    return entry.ok() && entry->has_value();
  }

  sys::TempDir base_;
  sys::Fd root_;
};

TEST_F(Target, is_made_with_its_parents) {
  EXPECT_TRUE(open_target(root_, "/a/b/c", TargetType::directory).ok());
  EXPECT_TRUE(exists("root/a/b/c"));
  EXPECT_TRUE(open_target(root_, "/a/file", TargetType::file).ok());
  auto entry = sys::stat_entry(base_.fd(), "root/a/file");
  ASSERT_TRUE(entry.ok() && *entry);
  EXPECT_TRUE(S_ISREG((*entry)->st_mode));
}

TEST_F(Target, stays_inside_whatever_links_say) {
  link("../../outside", "up");
  link("/outside", "absolute");
  EXPECT_TRUE(open_target(root_, "/up/x", TargetType::directory).ok());
  EXPECT_TRUE(open_target(root_, "/absolute/y", TargetType::file).ok());
  EXPECT_TRUE(open_target(root_, "/../../outside/z", TargetType::file).ok());
  EXPECT_FALSE(exists("outside/x"));
  EXPECT_FALSE(exists("outside/y"));
  EXPECT_FALSE(exists("outside/z"));
  EXPECT_TRUE(exists("root/outside/x"));
  EXPECT_TRUE(exists("root/outside/y"));
  EXPECT_TRUE(exists("root/outside/z"));
}

TEST_F(Target, is_made_where_a_dangling_link_points) {
  link("/run/stub/resolv.conf", "resolv.conf");
  EXPECT_TRUE(open_target(root_, "/resolv.conf", TargetType::file).ok());
  EXPECT_TRUE(exists("root/run/stub/resolv.conf"));
}

TEST_F(Target, gives_up_on_a_loop_of_links) {
  link("b", "a");
  link("a", "b");
  auto target = open_target(root_, "/a/x", TargetType::directory);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(to_line(target.error()), "open '/a/x': Too many levels of symbolic links");
}

TEST_F(Target, that_must_be_exact_is_no_link_and_no_file) {
  link("/outside", "proc");
  ASSERT_TRUE(sys::write_file(root_, "sys", "x").ok());
  auto proc = open_exact_target(root_, "/proc");
  ASSERT_FALSE(proc.ok());
  EXPECT_EQ(to_line(proc.error()), "'/proc' is a symbolic link in the image");
  auto sysfs = open_exact_target(root_, "/sys");
  ASSERT_FALSE(sysfs.ok());
  EXPECT_EQ(to_line(sysfs.error()), "'/sys' is not a directory in the image");
  EXPECT_TRUE(open_exact_target(root_, "/dev").ok());
  EXPECT_TRUE(exists("root/dev"));
}

TEST_F(Target, below_dev_has_a_parent_in_the_containers_own) {
  Parents parents;
  ASSERT_TRUE(sys::make_directory(root_, "in").ok());
  auto opened = sys::open_at(root_, "in", O_PATH | O_DIRECTORY);
  ASSERT_TRUE(opened.ok());
  const sys::Fd own = std::move(opened).value();
  for (const char* path : {"/dev/node", "/dev/y/node"}) {
    auto parent = parents.open(root_, own, path);
    ASSERT_TRUE(parent.ok());
    EXPECT_TRUE(parent->is_own) << path;
  }
  EXPECT_TRUE(exists("root/in/y"));
  EXPECT_FALSE(exists("root/dev"));
}

TEST_F(Target, has_a_parent_and_a_name) {
  Parents parents;
  auto parent = parents.open(root_, {}, "/dev/x/node");
  ASSERT_TRUE(parent.ok());
  EXPECT_EQ(parent->name, "node");
  EXPECT_TRUE(parent->is_own);
  EXPECT_TRUE(exists("root/dev/x"));
  EXPECT_FALSE(parents.open(root_, {}, "/dev/..").ok());
  EXPECT_FALSE(parents.open(root_, {}, "/").ok());
}

}  // namespace
}  // namespace berth::runtime
