// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/tree_record.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"

namespace berth::transfer {
namespace {

class TreeRecord : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(sys::make_directory(place_.fd(), "fs", 0755).ok());
    tree_ = *sys::open_at(place_.fd(), "fs", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(sys::write_file(tree_, "a file", "content", 0644).ok());
    ASSERT_TRUE(sys::make_hard_link(tree_, "a file", tree_, "twice").ok());
  }

  std::string record(const std::vector<LeftOutDevice>& left_out = {}) {
    EXPECT_TRUE(record_tree(tree_, {}, left_out, place_.fd()).ok());
    return *sys::read_file(place_.fd(), kTreeFile, 1 << 20);
  }
  Result<TreeDifferences> compare(const std::string& text) {
    return compare_tree(tree_, *sys::memory_file("record", text), Depth::all, {});
  }

  sys::TempDir place_ =
      *sys::TempDir::make(*sys::open_at(sys::cwd(), "/tmp", O_RDONLY | O_DIRECTORY), "berth-tree-");
  sys::Fd tree_;
};

TEST_F(TreeRecord, OfATreeThatIsAsItWasTellsNothing) {
  auto found = compare(record());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->count, 0u);
  EXPECT_EQ(found->files, 2u);
  EXPECT_TRUE(found->left_out.empty());
}

TEST_F(TreeRecord, KeepsTheDevicesThatWereNotMade) {
  auto found = compare(record({{"dev/my disk", S_IFBLK | 0640, makedev(259, 300)}}));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->count, 0u);
  ASSERT_EQ(found->left_out.size(), 1u);
  EXPECT_EQ(found->left_out[0].path, "dev/my disk");
  EXPECT_EQ(found->left_out[0].mode, S_IFBLK | 0640u);
  EXPECT_EQ(found->left_out[0].number, makedev(259, 300));
}

TEST_F(TreeRecord, ThatWasCutAnywhereIsDamaged) {
  std::string text = record({{"dev/null", S_IFCHR | 0666, makedev(1, 3)}});
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(compare(text.substr(0, length)).ok()) << length;
  }
}

TEST_F(TreeRecord, TellsWhatWasChanged) {
  std::string text = record();
  ASSERT_TRUE(sys::remove_entry(tree_, "twice").ok());
  ASSERT_TRUE(sys::write_file(tree_, "more", "", 0644).ok());
  auto found = compare(text);
  ASSERT_TRUE(found.ok());
  std::string all;
  for (const std::string& line : found->texts) all += line + "\n";
  EXPECT_NE(all.find("'twice' is missing"), std::string::npos) << all;
  EXPECT_NE(all.find("'more' is not of the layer"), std::string::npos) << all;
}

TEST_F(TreeRecord, HasOneOrderWithTheTree) {
  for (const char* name : {"a", "a-b", "a.b", "b"}) {
    ASSERT_TRUE(sys::make_directory(tree_, name, 0755).ok());
    ASSERT_TRUE(sys::write_file(tree_, std::string(name) + "/x", "", 0644).ok());
  }
  ASSERT_TRUE(sys::write_file(tree_, "a!", "", 0644).ok());
  std::string text = record();
  EXPECT_EQ(compare(text)->count, 0u);
  ASSERT_TRUE(sys::remove_entry(tree_, "a/x").ok());
  ASSERT_TRUE(sys::remove_entry(tree_, "b/x").ok());
  auto found = compare(text);
  ASSERT_TRUE(found.ok());
  std::vector<std::string> missing;
  for (const std::string& line : found->texts) {
    if (line.ends_with("is missing")) missing.push_back(line);
  }
  EXPECT_EQ(missing, (std::vector<std::string>{"'a/x' is missing", "'b/x' is missing"}));
}

TEST_F(TreeRecord, HolesThatItDoesNotHaveAreNotRead) {
  constexpr uint64_t kTerabyte = uint64_t{1} << 40;
  sys::Fd file = *sys::open_at(tree_, "holes", O_WRONLY | O_CREAT, 0644);
  ASSERT_TRUE(sys::truncate(file, kTerabyte, "holes").ok());
  struct stat status = *sys::stat_fd(file, "holes");
  WrittenFiles written;
  written[status.st_ino] = {};
  ASSERT_TRUE(record_tree(tree_, written, {}, place_.fd()).ok());
  auto found = compare(*sys::read_file(place_.fd(), kTreeFile, 1 << 20));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->count, 0u);
  EXPECT_LT(found->bytes, kTerabyte);
}

}  // namespace
}  // namespace berth::transfer
