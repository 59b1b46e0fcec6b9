// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/checkpoint/criu.hpp"

namespace berth::runtime {
namespace {

const std::vector<sys::MountEntry> kHost = sys::parse_mount_table(
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "21 20 0:5 / /dev rw - devtmpfs udev rw\n"
    "22 20 0:20 / /sys rw - sysfs sysfs rw\n"
    "23 20 0:30 / /srv/data rw - xfs /dev/sdb rw\n");

std::vector<std::string> outside(std::string_view container,
                                 const std::vector<std::string>& bound = {}) {
  std::vector<std::string> points;
  for (const auto& line : outside_mounts(sys::parse_mount_table(container), kHost, bound)) {
    points.push_back(line.point);
  }
  return points;
}

const std::string kRoot = "40 39 8:1 /srv/web/rootfs / rw master:1 - ext4 /dev/sda1 rw\n";
using Points = std::vector<std::string>;

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
