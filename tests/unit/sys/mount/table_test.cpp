// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"

namespace berth::sys {
namespace {

TEST(MountTable, reads_each_mount_with_any_number_of_fields) {
  EXPECT_EQ(parse_mount_table("29 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
                              "30 29 0:27 /r\\040s /a\\040b\\134 rw shared:1 master:2 - overlay "
                              "berth:0123\\040x:1 ro\n"),
            (std::vector<MountEntry>{
                {29, 1, "254:0", "/", "/", "ext4", "/dev/vda", false},
                {30, 29, "0:27", "/r s", "/a b\\", "overlay", "berth:0123 x:1", true}}));
}

TEST(MountTable, skips_lines_that_are_not_whole) {
  EXPECT_TRUE(parse_mount_table("").empty());
  EXPECT_TRUE(parse_mount_table("29 1 254:0 /\nx 1 0:1 / / rw - tmpfs none rw\n\n").empty());
  EXPECT_TRUE(parse_mount_table("32 29 0:29 / /c rw\n33 29 0:30 / /d rw - tmpfs\n").empty());
  EXPECT_TRUE(parse_mount_table("\n1 2 3\n40 39 8:1 / / rw ext4 x rw\n").empty());
}

TEST(MountTable, undoes_only_whole_escapes) {
  EXPECT_EQ(unescape_mount_path("/c\\134d"), "/c\\d");
  EXPECT_EQ(unescape_mount_path("/\\0"), "/\\0");
}

TEST(MountTable, knows_the_mount_that_a_handle_is_in) {
  auto table = mount_table();
  ASSERT_TRUE(table.ok());
  auto root = open_at(cwd(), "/", O_PATH);
  ASSERT_TRUE(root.ok());
  auto id = mount_id(*root, "/");
  ASSERT_TRUE(id.ok());
  for (const auto& entry : *table) {
    if (entry.id != *id) continue;
    EXPECT_EQ(entry.point, "/");
    EXPECT_TRUE(open_mount(entry).ok());
    MountEntry elsewhere = entry;
    elsewhere.point = "/proc";
    EXPECT_FALSE(open_mount(elsewhere).ok());
    return;
  }
  FAIL() << "the root is in no mount of the table";
}

}  // namespace
}  // namespace berth::sys
