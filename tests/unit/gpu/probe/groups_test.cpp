// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/probe/devices.hpp"
#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using ::testing::ElementsAre;
using testing::inventory_of;
using ::testing::IsEmpty;

const DeviceGroup* find_group(const Inventory& inventory, const std::string& name) {
  for (const DeviceGroup& group : inventory.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

std::vector<std::string> paths_of(const DeviceGroup& group) {
  std::vector<std::string> out;
  for (const Node& node : group.nodes) out.push_back(node.path);
  return out;
}

TEST(Groups, a_machine_without_such_devices_has_the_imex_major_alone) {
  Inventory inventory = inventory_of(DriverTree("one", "--caps-major 240"));
  ASSERT_EQ(inventory.groups.size(), 1U);
  const DeviceGroup& imex = inventory.groups[0];
  EXPECT_EQ(imex.name, "imex");
  EXPECT_EQ(imex.major, 239U);
  EXPECT_THAT(imex.nodes, IsEmpty());
}

TEST(Groups, each_has_its_nodes_and_files) {
  DriverTree tree(
      "one",
      "--caps-major 240 --group imex --group gds --group gdrcopy --group mofed --group nvswitch");
  Inventory inventory = inventory_of(tree);
  ASSERT_EQ(inventory.groups.size(), 5U);
  const DeviceGroup* gds = find_group(inventory, "gds");
  ASSERT_NE(gds, nullptr);
  EXPECT_THAT(paths_of(*gds), ElementsAre("/dev/nvidia-fs0", "/dev/nvidia-fs1", "/dev/nvidia-fs2"));
  ASSERT_EQ(gds->files.size(), 2U);
  EXPECT_EQ(gds->files[0].container_path, "/etc/cufile.json");
  EXPECT_EQ(gds->files[0].host_path, tree.root() + "/etc/cufile.json");
  EXPECT_EQ(gds->files[1].kind, FileKind::directory);
  EXPECT_EQ(gds->files[1].container_path, "/run/udev");
  EXPECT_THAT(paths_of(*find_group(inventory, "gdrcopy")), ElementsAre("/dev/gdrdrv"));
  EXPECT_THAT(
      paths_of(*find_group(inventory, "mofed")),
      ElementsAre("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1", "/dev/infiniband/rdma_cm"));
  EXPECT_THAT(paths_of(*find_group(inventory, "nvswitch")),
              ElementsAre("/dev/nvidia-nvswitchctl", "/dev/nvidia-nvswitch0"));
  const DeviceGroup* imex = find_group(inventory, "imex");
  EXPECT_THAT(paths_of(*imex), ElementsAre("/dev/nvidia-caps-imex-channels/channel0",
                                           "/dev/nvidia-caps-imex-channels/channel1"));
  EXPECT_EQ(imex->files[0].container_path, "/run/nvidia-imex");
}

TEST(Groups, a_channel_of_an_earlier_module_is_none) {
  DriverTree tree("one", "--caps-major 240 --group imex");
  testing::write_text(tree.root() + "/dev/nodes",
                      "/dev/nvidia0 195 0 666\n"
                      "/dev/nvidia-caps-imex-channels/channel0 239 0 666\n"
                      "/dev/nvidia-caps-imex-channels/channel1 230 1 666\n");
  EXPECT_THAT(paths_of(*find_group(inventory_of(tree), "imex")),
              ElementsAre("/dev/nvidia-caps-imex-channels/channel0"));
}

}  // namespace
}  // namespace berth::gpu
