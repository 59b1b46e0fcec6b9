// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/use.hpp"

#include <gtest/gtest.h>

using namespace berth;
using namespace berth::engine;

namespace {

gpu::Node node(std::string path) {
  gpu::Node made;
  made.path = std::move(path);
  return made;
}

/// Two GPUs, of which the second is cut into two slices; nodes are not numbered as GPUs are.
gpu::Inventory machine() {
  gpu::Inventory inventory;
  gpu::Gpu& whole = inventory.gpus.emplace_back();
  whole.pci_address = "0000:1b:00.0";
  whole.node = node("/dev/nvidia1");
  gpu::Gpu& cut = inventory.gpus.emplace_back();
  cut.index = 1;
  cut.pci_address = "0000:43:00.0";
  cut.node = node("/dev/nvidia0");
  for (uint32_t i = 0; i < 2; ++i) {
    gpu::MigDevice& slice = cut.mig.emplace_back();
    slice.index = i;
    slice.gpu_instance = 7 + i;
    slice.nodes = {node("/dev/nvidia-caps/nvidia-cap" + std::to_string(10 + i)),
                   node("/dev/nvidia-caps/nvidia-cap" + std::to_string(20 + i))};
  }
  return inventory;
}

gpu::Uses use() {
  return {{{"0000:43:00.0", std::nullopt, gpu::MemoryUse{5, 100}, {{8, 0, gpu::MemoryUse{3, 50}}}},
           {"0000:1b:00.0", 42, gpu::MemoryUse{7, 200}, {}}}};
}

std::string text(const std::vector<GpuUse>& gpus) {
  std::string all;
  for (const GpuUse& gpu : gpus) {
    auto number = [](auto value) { return value ? std::to_string(*value) : "?"; };
    all += gpu.name + " " + number(gpu.busy_percent) + " " + number(gpu.used_bytes) + "/" +
           number(gpu.total_bytes) + "; ";
  }
  return all;
}

TEST(GpusOf, are_those_whose_nodes_the_container_has) {
  EXPECT_EQ(text(gpus_of({"/dev/nvidia1", "/dev/nvidiactl"}, machine(), use())), "0 42 7/200; ");
  EXPECT_EQ(text(gpus_of({"/dev/nvidiactl"}, machine(), use())), "");
  EXPECT_EQ(text(gpus_of({}, machine(), use())), "");
}

TEST(GpusOf, a_slice_is_the_containers_with_both_of_its_nodes) {
  std::set<std::string> nodes = {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap11",
                                 "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap10"};
  EXPECT_EQ(text(gpus_of(nodes, machine(), use())), "1:1 ? 3/50; ");
}

TEST(GpusOf, are_named_although_nvml_says_nothing) {
  EXPECT_EQ(text(gpus_of({"/dev/nvidia1"}, machine(), {})), "0 ? ?/?; ");
}

TEST(GpusOf, a_partition_is_named_and_has_no_figures) {
  gpu::Inventory inventory;
  gpu::Gpu& cut = inventory.gpus.emplace_back();
  cut.vendor = gpu::Vendor::amd;
  cut.pci_address = "0000:1b:00.0";
  cut.node = node("/dev/dri/renderD128");
  for (uint32_t i = 0; i < 2; ++i) {
    gpu::Partition& one = cut.partitions.emplace_back();
    one.index = i;
    one.nodes = {node("/dev/dri/card" + std::to_string(i)),
                 node("/dev/dri/renderD" + std::to_string(128 + i))};
  }
  EXPECT_EQ(text(gpus_of({"/dev/dri/card0", "/dev/dri/renderD128"}, inventory, use())),
            "0:0 ? ?/?; ");
  EXPECT_EQ(text(gpus_of({"/dev/dri/card1", "/dev/dri/renderD129"}, inventory, use())),
            "0:1 ? ?/?; ");
}

}  // namespace
