// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount/table.hpp"

#include <gtest/gtest.h>

namespace berth::runtime {
namespace {

const std::vector<MountLine> kHost = parse_mount_table(
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "21 20 0:5 / /dev rw - devtmpfs udev rw\n"
    "22 20 0:20 / /sys rw - sysfs sysfs rw\n"
    "23 20 0:30 / /srv/data rw - xfs /dev/sdb rw\n");

std::vector<std::string> outside(std::string_view container,
                                 const std::vector<std::string>& bound = {}) {
  std::vector<std::string> points;
  for (const auto& line : outside_mounts(parse_mount_table(container), kHost, bound)) {
    points.push_back(line.point);
  }
  return points;
}

const std::string kRoot = "40 39 8:1 /srv/web/rootfs / rw master:1 - ext4 /dev/sda1 rw\n";
using Points = std::vector<std::string>;

TEST(MountTable, undoes_the_escapes_of_names) {
  auto lines = parse_mount_table("40 39 8:1 /a\\040b /c\\134d rw shared:1 - ext4 /dev/sda1 rw\n");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].id, "40");
  EXPECT_EQ(lines[0].device, "8:1");
  EXPECT_EQ(lines[0].root, "/a b");
  EXPECT_EQ(lines[0].point, "/c\\d");
  EXPECT_EQ(lines[0].type, "ext4");
}

TEST(MountTable, skips_lines_that_make_no_sense) {
  EXPECT_TRUE(parse_mount_table("\n1 2 3\n40 39 8:1 / / rw ext4 x rw\n").empty());
}

TEST(MountTable, a_file_system_of_the_host_is_outside) {
  EXPECT_EQ(outside(kRoot + "41 40 0:30 /x /data ro - xfs /dev/sdb rw\n"
                            "42 40 0:5 /null /proc/keys rw - devtmpfs udev rw\n"
                            "43 40 8:1 /srv/other /other rw - ext4 /dev/sda1 rw\n"),
            (Points{"/data", "/proc/keys", "/other"}));
}

TEST(MountTable, what_a_container_has_for_itself_is_not) {
  EXPECT_EQ(outside(kRoot + "41 40 0:50 / /proc rw - proc proc rw\n"
                            "42 40 0:51 / /dev rw - tmpfs tmpfs rw\n"
                            "43 40 0:20 / /sys ro - sysfs sysfs rw\n"
                            "44 40 8:1 /srv/web/rootfs/etc /etc ro - ext4 /dev/sda1 rw\n"),
            Points{});
}

TEST(MountTable, what_follows_a_mount_of_the_host_is_outside) {
  EXPECT_EQ(outside(kRoot + "41 40 0:20 / /sys ro shared:7 master:3 - sysfs sysfs rw\n"),
            Points{"/sys"});
}

TEST(MountTable, what_is_bound_by_the_config_is_outside_with_all_below_it) {
  EXPECT_EQ(outside(kRoot + "41 40 0:20 / /sys ro - sysfs sysfs rw\n"
                            "42 41 0:60 / /sys/fs/x ro - tmpfs tmpfs rw\n"
                            "43 40 0:61 / /system rw - tmpfs tmpfs rw\n",
                    {"/sys"}),
            (Points{"/sys", "/sys/fs/x"}));
}

}  // namespace
}  // namespace berth::runtime
