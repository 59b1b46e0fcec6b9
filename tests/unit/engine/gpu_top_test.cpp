// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu_top.hpp"

#include <gtest/gtest.h>

#include <map>

#include "engine/metrics.hpp"

using namespace berth;
using namespace berth::engine;

namespace {

gpu::KnownLease lease(std::string name, int64_t pid, std::string cgroup = {}) {
  gpu::KnownLease known;
  known.lease.container = "0123456789abcdef";
  known.lease.name = std::move(name);
  known.lease.life.pid = pid;
  known.lease.life.cgroup = std::move(cgroup);
  return known;
}

class Processes {
 public:
  std::map<int64_t, SeenProcess> all;

  SeeProcess see() const {
    return [this](int64_t pid) -> std::optional<SeenProcess> {
      auto found = all.find(pid);
      if (found == all.end()) return std::nullopt;
      return found->second;
    };
  }
};

std::string owner(int64_t pid, const std::vector<gpu::KnownLease>& leases, const Processes& all) {
  const gpu::KnownLease* found = lease_of(pid, leases, all.see());
  return found == nullptr ? "nobody" : found->lease.name;
}

TEST(LeaseOf, is_that_of_the_cgroup_a_process_is_in) {
  Processes all;
  all.all[50] = {1, "python3", 0, {"/berth/one/inner"}};
  all.all[51] = {1, "python3", 0, {"/berth/onerous"}};
  std::vector<gpu::KnownLease> leases = {lease("one", 10, "berth/one"), lease("root", 11, "/")};
  EXPECT_EQ(owner(50, leases, all), "one");
  EXPECT_EQ(owner(51, leases, all), "nobody");
}

TEST(LeaseOf, is_that_of_an_ancestor_where_there_is_no_cgroup) {
  Processes all;
  all.all[52] = {51, "worker", 0, {"/"}};
  all.all[51] = {50, "python3", 0, {"/"}};
  all.all[50] = {1, "sh", 0, {"/"}};
  EXPECT_EQ(owner(52, {lease("one", 50)}, all), "one");
  EXPECT_EQ(owner(52, {lease("one", 0), lease("other", 49)}, all), "nobody");
}

TEST(LeaseOf, of_a_process_that_is_hidden_or_its_own_ancestor_is_nobodys) {
  Processes all;
  all.all[60] = {61, "a", 0, {}};
  all.all[61] = {60, "b", 0, {}};
  EXPECT_EQ(owner(60, {lease("one", 50)}, all), "nobody");
  EXPECT_EQ(owner(99, {lease("one", 50)}, all), "nobody");
}

gpu::Inventory machine() {
  gpu::Inventory inventory;
  gpu::Gpu& gpu = inventory.gpus.emplace_back();
  gpu.pci_address = "0000:1b:00.0";
  gpu.uuid = "GPU-1";
  gpu.model = "Model \"X\"";
  return inventory;
}

gpu::NvmlUse use() {
  gpu::NvmlUse use;
  gpu::NvmlGpuUse& one = use.gpus.emplace_back();
  one.pci_address = "0000:1b:00.0";
  one.busy_percent = 42;
  one.memory = gpu::NvmlMemory{7, 200};
  one.milliwatts = 350'500;
  one.processes = {{50, 5, std::nullopt, std::nullopt}, {99, std::nullopt, {}, {}}};
  return use;
}

std::vector<GpuState> states() {
  Processes all;
  all.all[50] = {1, "python3", 1000, {"/c/one"}};
  gpu::Holders holders;
  holders.leases.push_back(lease("one", 10, "c/one"));
  holders.leases[0].lease.keys = {"0000:1b:00.0"};
  return gpu_states(machine(), use(), holders, all.see());
}

TEST(GpuStates, say_who_has_a_gpu_and_what_runs_on_it) {
  std::vector<GpuState> found = states();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, "0");
  ASSERT_EQ(found[0].leases.size(), 1u);
  ASSERT_EQ(found[0].processes.size(), 2u);
  EXPECT_EQ(found[0].processes[0].container, "one");
  EXPECT_EQ(found[0].processes[0].command, "python3");
  EXPECT_EQ(found[0].processes[1].container, "");
  EXPECT_EQ(found[0].processes[1].command, "");
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
  EXPECT_TRUE(has(R"(berth_container_gpu_memory_bytes{gpu="0",name="one"} 5)")) << text;
  EXPECT_TRUE(has("# TYPE berth_gpu_lease gauge")) << text;
  EXPECT_EQ(text.find("temperature"), std::string::npos) << text;
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
