// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/top.hpp"

#include <gtest/gtest.h>

#include "engine/container/list.hpp"
#include "engine/system/metrics.hpp"
#include "unit/gpu/ledger/seen.hpp"

using namespace berth;
using namespace berth::engine;

namespace {

gpu::Inventory idle_machine() {
  gpu::Inventory inventory;
  gpu::Gpu& gpu = inventory.gpus.emplace_back();
  gpu.pci_address = "0000:1b:00.0";
  gpu.uuid = "GPU-1";
  gpu.model = "Model \"X\"";
  return inventory;
}

gpu::Uses two_in_use() {
  gpu::Uses use;
  gpu::Use& one = use.gpus.emplace_back();
  one.pci_address = "0000:1b:00.0";
  one.busy_percent = 42;
  one.memory = gpu::MemoryUse{7, 200};
  one.milliwatts = 350'500;
  one.processes.emplace();
  one.processes->push_back({50, 5, std::nullopt, std::nullopt});
  one.processes->push_back({99, std::nullopt, {}, {}});
  return use;
}

std::vector<GpuState> states() {
  gpu::Processes all;
  all.add(50, 1, gpu::kUser, {"/c/one"});
  gpu::Holders holders;
  holders.leases.push_back(gpu::known_lease("one", 10, "c/one"));
  holders.leases[0].lease.keys = {"0000:1b:00.0"};
  return gpu_states(idle_machine(), two_in_use(), holders, all.view());
}

TEST(GpuStates, say_who_has_a_gpu_and_what_runs_on_it) {
  std::vector<GpuState> found = states();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, "0");
  ASSERT_EQ(found[0].leases.size(), 1u);
  ASSERT_TRUE(found[0].processes && found[0].processes->size() == 2);
  const GpuProcess& ours = found[0].processes->at(0);
  EXPECT_TRUE(ours.lease && ours.lease->name == "one");
  EXPECT_EQ(ours.command, "python3");
  const GpuProcess& hidden = found[0].processes->at(1);
  EXPECT_FALSE(hidden.lease || hidden.user);
  EXPECT_EQ(hidden.command, "");
}

TEST(GpuStates, what_nobody_tells_is_not_known) {
  std::vector<GpuState> found = gpu_states(idle_machine(), {}, {}, gpu::Processes().view());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].processes || found[0].memory || found[0].busy_percent);
}

TEST(GpuStates, of_a_partition_there_are_no_figures_but_its_gpus) {
  gpu::Inventory inventory = idle_machine();
  inventory.gpus[0].vendor = gpu::Vendor::amd;
  inventory.gpus[0].partitions = {{0, {}}, {1, {}}};
  gpu::Processes all;
  all.add(50, 1, gpu::kUser, {"/c/one"});
  gpu::Holders holders;
  holders.leases.push_back(gpu::known_lease("one", 10, "c/one"));
  holders.leases[0].lease.keys = {"0000:1b:00.0/1"};
  std::vector<GpuState> found = gpu_states(inventory, two_in_use(), holders, all.view());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].busy_percent, 42u);
  ASSERT_TRUE(found[0].processes && found[0].processes->size() == 2);
  EXPECT_TRUE(found[0].processes->at(0).lease);
  EXPECT_EQ(found[2].index, "0:1");
  EXPECT_EQ(found[2].leases.size(), 1u);
  EXPECT_FALSE(found[2].processes || found[2].memory || found[2].busy_percent);
}

TEST(Metrics, have_a_line_for_what_is_known_and_none_for_the_rest) {
  Measured measured;
  measured.gpus.gpus = states();
  std::string text = metrics_text(measured);
  auto has = [&](std::string_view line) {
    return text.find(std::string(line) + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has(R"(berth_gpu_info{gpu="0",id="GPU-1",model="Model \"X\""} 1)")) << text;
  EXPECT_TRUE(has(R"(berth_gpu_busy_ratio{gpu="0"} 0.42)")) << text;
  EXPECT_TRUE(has(R"(berth_gpu_power_watts{gpu="0"} 350.5)")) << text;
  EXPECT_TRUE(has(R"(berth_container_gpu_memory_bytes{gpu="0",id="0123456789abcdef"} 5)")) << text;
  EXPECT_TRUE(has("# TYPE berth_gpu_lease gauge")) << text;
  EXPECT_EQ(text.find("temperature"), std::string::npos) << text;
  EXPECT_EQ(text.find("waiting"), std::string::npos) << text;
}

TEST(Metrics, are_sums_and_states_of_containers) {
  Measured measured;
  ContainerSummary one;
  one.id = "0123";
  one.name = "web\n";
  one.state = ContainerState::running;
  measured.containers = {one, one};
  Usage use;
  use.cpu_ns = 1'500'000'000;
  measured.running.emplace_back(one, use);
  std::string text = metrics_text(measured);
  EXPECT_NE(text.find("berth_containers{state=\"running\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("name=\"web\\\\n\",image=\"\"} 1.5\n"), std::string::npos) << text;
}

}  // namespace
