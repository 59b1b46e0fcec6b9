// SPDX-License-Identifier: Apache-2.0
#include "sys/file/open_devices.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

const dev_t kZero = makedev(1, 5), kFull = makedev(1, 7);

/// Whether this process has /dev/zero.
bool has_zero() {
  auto found = find_open_device(::getpid(), {kFull, kZero});
  EXPECT_TRUE(found.ok()) << to_line(found.error());
  return found.ok() && *found == kZero;
}

TEST(FindOpenDevice, finds_what_is_open_by_whatever_name) {
  EXPECT_FALSE(has_zero());
  Fd zero = open_at(cwd(), "/dev/zero", O_RDONLY).value();
  EXPECT_TRUE(has_zero());
  zero.reset();
  EXPECT_FALSE(has_zero());
}

TEST(FindOpenDevice, finds_what_is_mapped_and_closed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  Fd zero = open_at(cwd(), "/dev/zero", O_RDWR).value();
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, zero.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  zero.reset();
  EXPECT_TRUE(has_zero());
  ::munmap(memory, 4096);
  EXPECT_FALSE(has_zero());
}

TEST(FindOpenDevice, finds_what_one_thread_has_in_a_table_of_its_own) {
  std::promise<void> opened, looked;
  std::thread other([&] {
    ASSERT_EQ(::unshare(CLONE_FILES), 0);
    Fd zero = open_at(cwd(), "/dev/zero", O_RDONLY).value();
    opened.set_value();
    looked.get_future().wait();
  });
  opened.get_future().wait();
  EXPECT_TRUE(has_zero());
  looked.set_value();
  other.join();
}

TEST(FindOpenDevice, of_a_process_that_has_ended_is_nothing) {
  auto found = find_open_device(1 << 22, {kZero});
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(*found);
}

TEST(StatQuietly, follows_no_link_and_tells_the_mount) {
  Fd dev = open_at(cwd(), "/dev", O_PATH | O_DIRECTORY).value();
  auto zero = stat_quietly(dev, "zero");
  ASSERT_TRUE(zero.ok() && *zero);
  EXPECT_TRUE(S_ISCHR((*zero)->mode));
  EXPECT_EQ((*zero)->rdev, kZero);
  auto link = stat_quietly(dev, "stdin");
  ASSERT_TRUE(link.ok() && *link);
  EXPECT_TRUE(S_ISLNK((*link)->mode));
  auto none = stat_quietly(dev, "none-such");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
}

}  // namespace
}  // namespace berth::sys
