// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gpu/inventory/kernel.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using testing::write_text;

TEST(Kfd, a_node_tells_the_address_and_the_architecture) {
  auto node = parse_kfd_node(
      "simd_count 440\nlocation_id 536881408\ndomain 1\ndrm_render_minor 130\n"
      "gfx_target_version 90010\nunique_id 11259375000000000001\nname aldebaran\n");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->pci_address, "0001:29:00.0");
  EXPECT_EQ(node->partition, 2U);
  EXPECT_EQ(node->architecture, "gfx90a");
  EXPECT_EQ(node->render_minor, 130U);
  EXPECT_EQ(node->unique_id, 11259375000000000001ULL);
}

TEST(Kfd, a_processor_is_no_gpu_and_lies_are_survived) {
  EXPECT_FALSE(parse_kfd_node("cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n"));
  EXPECT_FALSE(parse_kfd_node(""));
  EXPECT_FALSE(parse_kfd_node("simd_count -1\ndrm_render_minor 128\n"));
  auto node = parse_kfd_node(
      "simd_count 1\ndrm_render_minor 18446744073709551615\nlocation_id 18446744073709551615\n"
      "domain 18446744073709551615\ngfx_target_version 18446744073709551615\n");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->pci_address, "ffffffff:ff:1f.7");
}

void write_queue(const DriverTree& tree, const std::string& queue, const std::string& node) {
  write_text(tree.root() + std::string(kKfdProcesses) + "/" + queue + "/gpuid", node);
}

std::vector<std::string> processes_of(const DriverTree& tree) {
  std::vector<std::string> out;
  for (const KfdProcess& one : read_kfd_processes(DriverRoot::open(tree.root()).value())) {
    out.push_back(std::to_string(one.pid) + " on " + one.node.pci_address + "/" +
                  std::to_string(one.node.partition));
  }
  return out;
}

TEST(KfdProcesses, are_those_that_have_queues_once_for_each_gpu) {
  DriverTree tree("amd");
  EXPECT_THAT(processes_of(tree), IsEmpty());
  write_queue(tree, "77/queues/0", "4003");
  write_queue(tree, "77/queues/1", "4003");
  write_queue(tree, "77/queues/5", "4001");
  write_queue(tree, "1200/queues/0", "4003");
  write_text(tree.root() + std::string(kKfdProcesses) + "/88/vram_4003", "4096\n");
  EXPECT_THAT(processes_of(tree),
              UnorderedElementsAre("77 on 0000:29:00.0/0", "77 on 0000:49:00.0/0",
                                   "1200 on 0000:49:00.0/0"));
}

TEST(KfdProcesses, compute_on_a_partition) {
  DriverTree tree("amd", "--partitions 4");
  write_queue(tree, "77/queues/0", "4007");
  EXPECT_THAT(processes_of(tree), ElementsAre("77 on 0000:2c:00.0/2"));
}

TEST(KfdProcesses, on_a_node_that_is_hidden_are_not_told_and_lies_are_survived) {
  DriverTree tree("amd");
  write_queue(tree, "77/queues/0", "4003");
  std::filesystem::remove_all(tree.root() + std::string(kKfdNodes) + "/3");
  for (const char* pid : {"0", "-1", "self", "4294967296"})
    write_queue(tree, std::string(pid) + "/queues/0", "4001");
  write_queue(tree, "78/queues/0", "0");
  write_queue(tree, "78/queues/1", "many");
  EXPECT_THAT(processes_of(tree), IsEmpty());
}

}  // namespace
}  // namespace berth::gpu
