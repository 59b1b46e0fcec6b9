// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/processors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"

namespace berth::sys {
namespace {

class Processors : public testing::Test {
 protected:
  void write(const std::string& directory, const std::string& name, const std::string& text) {
    size_t at = 0;
    while (at != directory.npos) {
      at = directory.find('/', at + 1);
      ignore(make_new_directory(temp_.fd(), directory.substr(0, at), 0700));
    }
    ASSERT_TRUE(write_file(temp_.fd(), directory + "/" + name, text).ok());
  }
  size_t quota(std::string_view own) { return processors_of_quota(temp_.fd(), own); }

  TempDir temp_ = *TempDir::make(*open_at(cwd(), "/tmp", O_RDONLY | O_DIRECTORY), "processors-");
};

TEST_F(Processors, are_no_more_than_the_least_quota_on_the_way_up) {
  write("a", "cpu.max", "300000 100000\n");
  write("a/b", "cpu.max", "max 100000\n");
  write("a/b/c", "cpu.max", "450000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 3u);
  EXPECT_EQ(quota("0::/a/b"), 3u);
  write("a/b/c", "cpu.max", "150000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 2u);
  write("a/b/c", "cpu.max", "1000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 1u);
}

TEST_F(Processors, are_those_of_version_1_too) {
  write("cpu/job", "cpu.cfs_quota_us", "400000\n");
  write("cpu/job", "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("3:cpu,cpuacct:/job\n2:memory:/job\n0::/\n"), 4u);
  write("cpu/job", "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota("3:cpu,cpuacct:/job\n"), SIZE_MAX);
}

TEST_F(Processors, have_no_quota_where_none_can_be_read) {
  write("a", "cpu.max", "garbage");
  for (const char* own : {"", "0::/a", "0::/nowhere", "x", "::", "0::a", "0::/../..", "4:cpu:/x"}) {
    EXPECT_EQ(quota(own), SIZE_MAX) << own;
  }
  EXPECT_GE(usable_processors(), 1u);
}

}  // namespace
}  // namespace berth::sys
