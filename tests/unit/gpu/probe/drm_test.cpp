// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/drm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using ::testing::ElementsAre;
using testing::has_problem;
using testing::inventory_of;
using ::testing::IsEmpty;

std::vector<std::string> paths_of(const std::vector<Node>& nodes) {
  std::vector<std::string> out;
  for (const Node& node : nodes) out.push_back(node.path);
  return out;
}

TEST(Amd, eight_gpus_on_four_boards) {
  Inventory inventory = inventory_of(DriverTree("amd"));
  ASSERT_EQ(inventory.gpus.size(), 8U);
  EXPECT_THAT(inventory.problems, IsEmpty());
  const Gpu& gpu = inventory.gpus[2];
  EXPECT_EQ(gpu.vendor, Vendor::amd);
  EXPECT_EQ(gpu.index, 2U);
  EXPECT_EQ(gpu.pci_address, "0000:49:00.0");
  EXPECT_EQ(gpu.model, "AMD INSTINCT MI250X");
  EXPECT_EQ(gpu.kernel_driver, "amdgpu");
  EXPECT_EQ(gpu.architecture, "gfx90a");
  EXPECT_EQ(gpu.uuid, "GPU-9c3f1a5500000002");
  EXPECT_EQ(gpu.memory_bytes, 68702699520U);
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(gpu.node.path, "/dev/dri/renderD130");
  EXPECT_EQ(gpu.minor, 130U);
  EXPECT_THAT(paths_of(gpu.drm_nodes), ElementsAre("/dev/dri/card2", "/dev/dri/renderD130"));
  EXPECT_EQ(gpu.drm_links[1].path, "/dev/dri/by-path/pci-0000:49:00.0-render");
  EXPECT_EQ(gpu.drm_links[1].target, "../renderD130");
  EXPECT_THAT(gpu.partitions, IsEmpty());
  EXPECT_EQ(gpu.compute_partition, "SPX");
  EXPECT_EQ(gpu.board, inventory.gpus[3].board);
  EXPECT_NE(gpu.board, inventory.gpus[4].board);
  EXPECT_FALSE(gpu.board.empty());
  EXPECT_THAT(gpu.nvlink_peers, ElementsAre(3, 4));
  EXPECT_EQ(inventory.gpus[7].pci_address, "0001:cc:00.0");
  EXPECT_THAT(paths_of(inventory.amd_control_nodes), ElementsAre("/dev/kfd"));
  EXPECT_THAT(inventory.control_nodes, IsEmpty());
  EXPECT_THAT(inventory.files, IsEmpty());
}

TEST(Amd, a_partitioned_gpu_has_nodes_for_each_partition) {
  Inventory inventory = inventory_of(DriverTree("amd", "--partitions 4"));
  ASSERT_EQ(inventory.gpus.size(), 8U);
  const Gpu& gpu = inventory.gpus[1];
  EXPECT_EQ(gpu.compute_partition, "CPX");
  ASSERT_EQ(gpu.partitions.size(), 4U);
  EXPECT_THAT(paths_of(gpu.partitions[0].nodes),
              ElementsAre("/dev/dri/card4", "/dev/dri/renderD132"));
  EXPECT_THAT(paths_of(gpu.partitions[3].nodes),
              ElementsAre("/dev/dri/card7", "/dev/dri/renderD135"));
  EXPECT_EQ(gpu.partitions[3].index, 3U);
  EXPECT_EQ(gpu.node.path, gpu.partitions[0].nodes[1].path);
}

TEST(Amd, a_gpu_whose_node_is_not_here_is_somebody_elses) {
  DriverTree tree("amd");
  testing::write_text(tree.root() + "/dev/nodes",
                      "/dev/kfd 300 0 666\n/dev/dri/renderD131 226 131 666\n");
  Inventory inventory = inventory_of(tree);
  ASSERT_EQ(inventory.gpus.size(), 1U);
  EXPECT_EQ(inventory.gpus[0].pci_address, "0000:4c:00.0");
  EXPECT_EQ(inventory.gpus[0].index, 0U);
  EXPECT_EQ(inventory.gpus[0].board, "");
  EXPECT_TRUE(has_problem(inventory, "the GPU at 0000:29:00.0 has no render node"));
}

TEST(Amd, says_that_kfd_is_missing) {
  DriverTree tree("amd");
  testing::write_text(tree.root() + "/dev/nodes", "/dev/dri/renderD131 226 131 666\n");
  EXPECT_TRUE(has_problem(inventory_of(tree), "there is no '/dev/kfd'"));
}

TEST(Amd, works_without_the_topology) {
  DriverTree tree("amd");
  std::filesystem::remove_all(tree.root() + "/sys/class/kfd");
  Inventory inventory = inventory_of(tree);
  ASSERT_EQ(inventory.gpus.size(), 8U);
  EXPECT_EQ(inventory.gpus[0].uuid, "");
  EXPECT_FALSE(inventory.gpus[0].architecture.has_value());
}

TEST(Amd, a_numa_node_of_minus_one_is_unknown) {
  EXPECT_FALSE(inventory_of(DriverTree("amd", "--numa -1")).gpus[0].numa_node.has_value());
}

TEST(Intel, both_drivers_have_gpus) {
  Inventory inventory = inventory_of(DriverTree("intel"));
  ASSERT_EQ(inventory.gpus.size(), 2U);
  EXPECT_THAT(inventory.problems, IsEmpty());
  EXPECT_EQ(inventory.gpus[0].vendor, Vendor::intel);
  EXPECT_EQ(inventory.gpus[0].kernel_driver, "i915");
  EXPECT_EQ(inventory.gpus[1].kernel_driver, "xe");
  EXPECT_EQ(inventory.gpus[1].model, "Intel GPU 8086:56c0");
  EXPECT_EQ(inventory.gpus[1].node.path, "/dev/dri/renderD129");
  EXPECT_EQ(inventory.gpus[1].index, 1U);
  EXPECT_THAT(inventory.amd_control_nodes, IsEmpty());
}

TEST(Intel, a_display_of_another_driver_is_none_of_ours) {
  DriverTree tree("intel");
  std::string driver = tree.root() + "/sys/bus/pci/devices/0000:3a:00.0/driver";
  std::filesystem::remove(driver);
  std::filesystem::create_symlink("../../drivers/vfio-pci", driver);
  EXPECT_EQ(inventory_of(tree).gpus.size(), 1U);
}

}  // namespace
}  // namespace berth::gpu
