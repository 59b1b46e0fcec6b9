// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu_top.hpp"

#include <gtest/gtest.h>

#include <map>

#include "engine/metrics.hpp"

using namespace berth;
using namespace berth::engine;

namespace {

constexpr uint64_t kSpace = 7;
constexpr uint32_t kUser = 1000, kFurther = 100'000, kStranger = 1001;

gpu::KnownLease lease(std::string name, int64_t pid, std::string cgroup = {}, uid_t user = 0) {
  gpu::KnownLease known;
  known.user = user;
  known.lease.container = "0123456789abcdef";
  known.lease.name = std::move(name);
  known.lease.life = {pid, static_cast<uint64_t>(pid) * 10, kSpace, "boot", std::move(cgroup)};
  return known;
}

class Processes {
 public:
  void add(int64_t pid, int64_t parent, uint32_t user, std::vector<std::string> cgroups = {"/"}) {
    all_[pid] = {parent, static_cast<uint64_t>(pid) * 10, "python3", user, std::move(cgroups)};
  }
  ProcessView view(uint64_t space = kSpace) const {
    auto see = [this](int64_t pid) -> std::optional<SeenProcess> {
      auto found = all_.find(pid);
      if (found == all_.end()) return std::nullopt;
      return found->second;
    };
    return {see, space};
  }

 private:
  std::map<int64_t, SeenProcess> all_;
};

std::string owner(int64_t pid, const std::vector<gpu::KnownLease>& leases,
                  const ProcessView& view) {
  const gpu::KnownLease* found = lease_of(pid, leases, view);
  return found == nullptr ? "nobody" : found->lease.name;
}

TEST(LeaseOf, is_that_of_the_cgroup_a_process_is_in) {
  Processes all;
  all.add(50, 1, kUser, {"/berth/one/inner"});
  all.add(51, 1, kUser, {"/berth/onerous"});
  std::vector<gpu::KnownLease> leases = {lease("root", 11, "/"), lease("one", 10, "berth/one")};
  EXPECT_EQ(owner(50, leases, all.view()), "one");
  EXPECT_EQ(owner(51, leases, all.view()), "nobody");
}

TEST(LeaseOf, is_that_of_an_ancestor) {
  Processes all;
  all.add(52, 51, kUser);
  all.add(51, 50, kUser);
  all.add(50, 1, kUser);
  EXPECT_EQ(owner(52, {lease("one", 50)}, all.view()), "one");
  EXPECT_EQ(owner(52, {lease("one", 0), lease("other", 49)}, all.view()), "nobody");
}

TEST(LeaseOf, of_another_pid_namespace_or_another_life_of_the_number_is_nobodys) {
  Processes all;
  all.add(50, 1, kUser);
  EXPECT_EQ(owner(50, {lease("one", 50)}, all.view(kSpace + 1)), "nobody");
  gpu::KnownLease before = lease("one", 50);
  before.lease.life.start_time = 3;
  EXPECT_EQ(owner(50, {before}, all.view()), "nobody");
}

TEST(LeaseOf, a_user_is_believed_of_his_own_processes_alone) {
  Processes all;
  all.add(40, 1, kUser);
  all.add(50, 40, kFurther, {"/other"});
  all.add(51, 50, kFurther, {"/other"});
  EXPECT_EQ(owner(51, {lease("his", 50, "", kUser)}, all.view()), "his");
  EXPECT_EQ(owner(51, {lease("claimed", 50, "", kStranger)}, all.view()), "nobody");
  EXPECT_EQ(owner(51, {lease("claimed", 9, "other", kStranger)}, all.view()), "nobody");
}

TEST(LeaseOf, of_a_process_that_is_hidden_or_its_own_ancestor_is_nobodys) {
  Processes all;
  all.add(60, 61, kUser);
  all.add(61, 60, kUser);
  EXPECT_EQ(owner(60, {lease("one", 50)}, all.view()), "nobody");
  EXPECT_EQ(owner(99, {lease("one", 50)}, all.view()), "nobody");
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
  all.add(50, 1, kUser, {"/c/one"});
  gpu::Holders holders;
  holders.leases.push_back(lease("one", 10, "c/one"));
  holders.leases[0].lease.keys = {"0000:1b:00.0"};
  return gpu_states(machine(), use(), holders, all.view());
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
  std::vector<GpuState> found = gpu_states(machine(), {}, {}, Processes().view());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].processes || found[0].memory || found[0].busy_percent);
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
