// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/update.hpp"

namespace berth::runtime {
namespace {

oci::Device device(std::string path, int64_t minor) {
  return {"c", std::move(path), 195, minor, {}, {}, {}};
}

std::string paths(const std::vector<oci::Device>& devices) {
  std::string out;
  for (const oci::Device& one : devices) out += one.path + " ";
  return out;
}

TEST(CompareDevices, says_what_comes_and_goes) {
  DeviceChange change = compare_devices({device("/dev/a", 1), device("/dev/b", 2)},
                                        {device("/dev/c", 3), device("/dev/b", 2)});
  EXPECT_EQ(paths(change.added), "/dev/c ");
  EXPECT_EQ(paths(change.removed), "/dev/a ");
}

TEST(CompareDevices, a_name_that_means_another_device_goes_and_comes) {
  DeviceChange change = compare_devices({device("/dev/a", 1)}, {device("/dev/a", 2)});
  ASSERT_EQ(change.added.size(), 1u);
  ASSERT_EQ(change.removed.size(), 1u);
  EXPECT_EQ(change.added[0].minor, 2);
  EXPECT_EQ(change.removed[0].minor, 1);
}

TEST(CompareDevices, equal_lists_change_nothing) {
  DeviceChange change = compare_devices({device("/dev/a", 1)}, {device("/dev/a", 1)});
  EXPECT_TRUE(change.added.empty() && change.removed.empty());
}

}  // namespace
}  // namespace berth::runtime
