// SPDX-License-Identifier: Apache-2.0
// The same promises for openat2 and for the component walk, which a seccomp filter forces.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/root_walk.hpp"

namespace berth::sys {
namespace {

std::string content(const Fd& root, const std::string& path, int flags = O_RDONLY) {
  auto fd = open_in_root(root, path, flags);
  if (!fd.ok()) return to_line(fd.error());
  return *read_all(*fd, path);
}

class OpenInRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = *open_at(cwd(), ::testing::TempDir(), O_RDONLY | O_DIRECTORY);
    temp_ = *TempDir::make(base_, "in-root-");
    ASSERT_TRUE(write_file(temp_.fd(), "outside", "outside").ok());
    ASSERT_TRUE(make_directory(temp_.fd(), "root").ok());
    root_ = *open_at(temp_.fd(), "root", O_PATH | O_DIRECTORY);
    ASSERT_TRUE(make_directories(root_, "a/b").ok());
    ASSERT_TRUE(write_file(root_, "a/b/file", "inside").ok());
    ASSERT_TRUE(write_file(root_, "outside", "still inside").ok());
    ASSERT_TRUE(make_symlink("../../../../outside", root_, "a/b/up").ok());
    ASSERT_TRUE(make_symlink("/a/b", root_, "absolute").ok());
    ASSERT_TRUE(make_symlink("loop", root_, "loop").ok());
    ASSERT_TRUE(make_symlink("a/b/file", root_, "link").ok());
  }

  void promises() {
    EXPECT_EQ(content(root_, "/a/b/file"), "inside");
    EXPECT_EQ(content(root_, "a//b/./file"), "inside");
    EXPECT_EQ(content(root_, "../outside"), "still inside");
    EXPECT_EQ(content(root_, "a/b/../../../outside"), "still inside");
    EXPECT_EQ(content(root_, "a/b/up"), "still inside");
    EXPECT_EQ(content(root_, "absolute/file"), "inside");
    EXPECT_EQ(content(root_, "absolute/../../outside"), "still inside");
    EXPECT_EQ(content(root_, "link"), "inside");
    EXPECT_EQ(content(root_, "link", O_RDONLY | O_NOFOLLOW),
              "open 'link': Too many levels of symbolic links");
    EXPECT_EQ(content(root_, "loop"), "open 'loop': Too many levels of symbolic links");
    EXPECT_EQ(content(root_, "nothing").substr(0, 14), "open 'nothing'");
    EXPECT_TRUE(open_in_root(root_, "/", O_PATH | O_DIRECTORY).ok());
  }

  Fd base_;
  TempDir temp_;
  Fd root_;
};

void deny_openat2() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_F(OpenInRoot, stays_inside_with_openat2) {
  promises();
}

TEST_F(OpenInRoot, stays_inside_where_openat2_is_missing) {
  pid_t child = ::fork();
  if (child == 0) {
    deny_openat2();
    promises();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(OpenInRoot, a_path_has_one_without_links_as_far_as_it_is_there) {
  ASSERT_TRUE(make_symlink("/data/site", root_, "a/dangling").ok());
  auto real = [&](const std::string& path) {
    auto found = real_path_in_root(root_, path);
    return found.ok() ? *found : to_line(found.error());
  };
  EXPECT_EQ(real("/a/b/file"), "/a/b/file");
  EXPECT_EQ(real("/absolute/file"), "/a/b/file");
  EXPECT_EQ(real("/a/b/up"), "/outside");
  EXPECT_EQ(real("/a/dangling/nvidia"), "/data/site/nvidia");
  EXPECT_EQ(real("/missing/x/../y/../../absolute"), "/a/b");
  EXPECT_EQ(real("/a/b/file/below"), "/a/b/file/below");
  EXPECT_EQ(real("/../.."), "/");
  EXPECT_EQ(real("/loop/x"), "open '/loop/x': Too many levels of symbolic links");
}

}  // namespace
}  // namespace berth::sys
