// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/mps.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/probe/use.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::engine {
namespace {

gpu::Inventory machine_of(size_t count) {
  gpu::Inventory machine = gpu::gpu_machine(count);
  for (size_t i = 0; i < count; ++i) machine.gpus[i].uuid = "GPU-" + std::to_string(count - i);
  return machine;
}

MpsPlan plan_of(gpu::MpsLimits limits) {
  MpsPlan plan;
  plan.limits = limits;
  return plan;
}

TEST(LimitsByMps, leave_to_the_kernel_what_it_keeps_of_all_of_them) {
  gpu::Inventory machine = machine_of(2);
  MpsPlan plan = plan_of({25, gpu::kGib});
  plan.regions = {{"nvidia/0000:10:00.0/vidmem", 80 * gpu::kGib}};
  EXPECT_EQ(limits_by_mps(plan, {{machine.gpus.data()}}), (gpu::MpsLimits{25, {}}));
  EXPECT_EQ(limits_by_mps(plan, gpu::whole_gpus(machine)), (gpu::MpsLimits{25, gpu::kGib}));
}

TEST(ShareOf, counts_gpus_by_their_ids) {
  gpu::Inventory machine = machine_of(3);
  MpsPlan plan = plan_of({25, {}});
  plan.user = 1000;
  auto share = share_of(plan, plan.limits, gpu::whole_gpus(machine));
  ASSERT_TRUE(share.ok());
  EXPECT_EQ(*share, (gpu::MpsShare{1000, {"GPU-1", "GPU-2", "GPU-3"}, {25, {}}}));
}

TEST(ShareOf, is_refused_for_what_mps_does_not_serve) {
  gpu::Inventory machine = machine_of(1);
  MpsPlan plan = plan_of({25, {}});
  auto why = [&](const std::vector<gpu::Selected>& selected, gpu::MpsLimits limits) {
    auto share = share_of(plan, limits, selected);
    return share.ok() ? "" : share.error().what;
  };
  EXPECT_EQ(why({}, {25, {}}), "--gpu-cores: no GPU was requested");
  machine.gpus[0].memory_bytes = gpu::kGib;
  EXPECT_EQ(why(gpu::whole_gpus(machine), {{}, 2 * gpu::kGib}),
            "--gpu-memory: GPU 0 has 1073741824 bytes");
  plan.modes[machine.gpus[0].pci_address] = gpu::kProhibited;
  EXPECT_EQ(why(gpu::whole_gpus(machine), {25, gpu::kGib}),
            "--gpu-cores, --gpu-memory: GPU 0 is in the compute mode 'prohibited'");
  machine.gpus[0].vendor = gpu::Vendor::amd;
  EXPECT_EQ(why(gpu::whole_gpus(machine), {25, {}}),
            "--gpu-cores: GPU 0: MPS is for GPUs that NVIDIA's driver knows");
}

TEST(CheckShare, lets_nobody_else_compute_where_one_process_may) {
  gpu::Inventory machine = machine_of(1);
  MpsPlan plan = plan_of({25, {}});
  gpu::Lease own;
  own.container = "own";
  own.mps = gpu::MpsUse{"share", 25, {}};
  gpu::KnownLease other;
  other.lease.container = "other";
  other.lease.keys = {gpu::key_of({machine.gpus.data()})};
  auto fine = [&] { return check_share(plan, gpu::whole_gpus(machine), {{other}, {}}, own).ok(); };
  EXPECT_TRUE(fine());
  plan.modes[machine.gpus[0].pci_address] = gpu::kExclusiveProcess;
  EXPECT_FALSE(fine());
  other.lease.mps = gpu::MpsUse{"another", 30, {}};
  EXPECT_FALSE(fine());
  other.lease.mps = own.mps;
  EXPECT_TRUE(fine());
  plan.modes.clear();
  plan.takes = true;
  other.lease.mps.reset();
  EXPECT_FALSE(fine());
  other.lease.container = "own";
  EXPECT_TRUE(fine());
}

TEST(AddShare, gives_the_pipes_to_read_and_the_memory_to_share) {
  oci::Spec spec;
  spec.process.emplace();
  spec.process->env = {"A=1", "CUDA_MPS_PIPE_DIRECTORY=/elsewhere"};
  oci::Mount memory;
  memory.destination = "/dev/shm";
  memory.type = "tmpfs";
  spec.mounts = {memory};
  add_share(gpu::place_of("/state", "0-1"), spec);
  EXPECT_EQ(spec.process->env,
            (std::vector<std::string>{"A=1", "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"}));
  ASSERT_EQ(spec.mounts.size(), 2U);
  EXPECT_EQ(spec.mounts[0].type, "bind");
  EXPECT_EQ(spec.mounts[0].source, "/state/mps/0-1/memory");
  EXPECT_EQ(spec.mounts[1].source, "/state/mps/0-1/pipes");
  const auto& options = spec.mounts[1].options;
  EXPECT_NE(std::find(options.begin(), options.end(), "ro"), options.end());
}

TEST(ParseGpuCores, takes_a_percentage) {
  EXPECT_EQ(parse_gpu_cores("25").value(), 25U);
  EXPECT_EQ(parse_gpu_cores("100%").value(), 100U);
  for (const char* wrong : {"", "0", "101", "-1", "1.5", "%", "25%%"}) {
    EXPECT_FALSE(parse_gpu_cores(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace berth::engine
