// SPDX-License-Identifier: Apache-2.0
#include "sys/user/trusted_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sys/file/remove_tree.hpp"

namespace berth::sys {
namespace {

using ::testing::HasSubstr;

/// <tmp>/site/deep/file, all ours.
class TrustedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "trusted-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
    std::filesystem::create_directories(base_ + "/site/deep");
    std::ofstream(file()) << "words";
    for (const auto& path : {base_ + "/site", base_ + "/site/deep"}) set_mode(path, 0755);
    set_mode(file(), 0644);
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  std::string file() const { return base_ + "/site/deep/file"; }
  static void set_mode(const std::string& path, mode_t mode) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0) << path;
  }
  /// The content, or why not.
  static std::string read(const std::string& path) {
    auto text = read_trusted_file_if_exists(path, 100);
    if (!text.ok()) return to_line(text.error());
    return text->value_or("nothing");
  }

  std::string base_;
};

TEST_F(TrustedFile, is_read_where_nobody_else_can_have_written_it) {
  EXPECT_EQ(read(file()), "words");
  EXPECT_EQ(read(base_ + "/site/none"), "nothing");
}

TEST_F(TrustedFile, is_refused_where_others_can_write_it) {
  set_mode(file(), 0666);
  EXPECT_THAT(read(file()),
              HasSubstr("file': it is writable by others; try: a copy in its place, which "
                        "nobody else has open: cp "));
}

TEST_F(TrustedFile, is_refused_where_others_can_write_a_directory_above_it) {
  set_mode(base_ + "/site", 0777);
  EXPECT_THAT(read(file()), HasSubstr("site': it is writable by others; try: chmod go-w "));
  // Nobody replaces there what another one has.
  set_mode(base_ + "/site", 01777);
  EXPECT_EQ(read(file()), "words");
}

TEST_F(TrustedFile, is_refused_where_it_or_a_directory_is_somebody_elses) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(::chown((base_ + "/site").c_str(), 1000, 1000), 0);
  EXPECT_THAT(read(file()), HasSubstr("site': it belongs to another user; try: chown root"));
  ASSERT_EQ(::chown((base_ + "/site").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(file().c_str(), 1000, 1000), 0);
  // Whoever has it open for writing would go on writing, whose ever it became.
  EXPECT_THAT(read(file()), HasSubstr("file': it belongs to another user; try: a copy"));
}

TEST_F(TrustedFile, is_no_directory_or_fifo) {
  EXPECT_THAT(read(base_ + "/site"), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((base_ + "/site/fifo").c_str(), 0600), 0);
  EXPECT_THAT(read(base_ + "/site/fifo"), HasSubstr("not a regular file"));
}

TEST_F(TrustedFile, a_directory_is_opened_under_the_same_conditions) {
  auto open = [&] { return open_trusted_directory_if_exists(base_ + "/site/deep"); };
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(*open());
  set_mode(base_ + "/site/deep", 0777);
  EXPECT_FALSE(open().ok());
  std::filesystem::remove_all(base_ + "/site");
  ASSERT_TRUE(open().ok());
  EXPECT_FALSE(*open());
}

}  // namespace
}  // namespace berth::sys
