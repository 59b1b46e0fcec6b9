// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "gpu/grant/job.hpp"
#include "gpu/grant/reach.hpp"
#include "gpu/grant/select.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

std::string reachable(const std::vector<std::string>& names, const std::string& visible,
                      const std::vector<std::string>& never = {},
                      const Inventory& machine = gpu_machine(8)) {
  Request request;
  if (!visible.empty()) {
    request.limits =
        find_job(Variables({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=" + visible}, {}))->limits;
  }
  request.never = keys_of(never, machine);
  auto out = reachable_names(names, never, request, machine, machine);
  return out.ok() ? join(*out, " ") : to_line(out.error());
}

TEST(CdiNames, are_held_to_the_job) {
  EXPECT_EQ(reachable({"nvidia.com/gpu=4"}, "4,5"), "nvidia.com/gpu=4");
  EXPECT_EQ(reachable({"nvidia.com/gpu=GPU-b4-0000"}, "4,5"), "nvidia.com/gpu=GPU-b4-0000");
  EXPECT_EQ(reachable({"nvidia.com/gpu=0"}, "4,5"),
            "--device nvidia.com/gpu=0: not one of the GPUs of CUDA_VISIBLE_DEVICES=4,5; try: "
            "--gpus all for those");
  EXPECT_EQ(reachable({"nvidia.com/gpu=mine"}, "4,5").substr(0, 53),
            "--device nvidia.com/gpu=mine: not one of the GPUs of ");
}

TEST(CdiNames, all_means_all_of_the_jobs) {
  EXPECT_EQ(reachable({"nvidia.com/gpu=all"}, "5,4"), "nvidia.com/gpu=5 nvidia.com/gpu=4");
  EXPECT_EQ(reachable({"nvidia.com/gpu=all"}, "MIG-c1", {}, sliced_machine(2)),
            "nvidia.com/gpu=1:1");
}

TEST(CdiNames, are_held_to_the_policy) {
  EXPECT_EQ(
      reachable({"nvidia.com/gpu=1"}, "", {"1"}),
      "--device nvidia.com/gpu=1: the policy of this machine does not allow it; try: berth policy "
      "show");
  EXPECT_EQ(reachable({"nvidia.com/gpu=all"}, "", {"2", "3", "4", "5", "6", "7"}),
            "nvidia.com/gpu=0 nvidia.com/gpu=1");
  EXPECT_EQ(reachable({"vendor.com/net=a"}, "", {"vendor.com/net=a"}).substr(0, 33),
            "--device vendor.com/net=a: the po");
}

TEST(CdiNames, of_a_withheld_gpu_are_withheld_whichever_of_them_the_policy_has) {
  for (const char* withheld :
       {"nvidia.com/gpu=1", "nvidia.com/gpu=GPU-aa1", "nvidia.com/gpu=gpu1"}) {
    EXPECT_EQ(reachable({"nvidia.com/gpu=all"}, "", {withheld}, gpu_machine(3)),
              "nvidia.com/gpu=0 nvidia.com/gpu=2")
        << withheld;
    for (const char* name : {"nvidia.com/gpu=1", "nvidia.com/gpu=GPU-aa1-0000"}) {
      EXPECT_NE(reachable({name}, "", {withheld}, gpu_machine(3)).find("does not allow it"),
                std::string::npos)
          << withheld << " " << name;
    }
  }
  EXPECT_EQ(reachable({"nvidia.com/gpu=all"}, "", {"nvidia.com/gpu=mig1:1"}, sliced_machine(2))
                .find("1:1"),
            std::string::npos);
  EXPECT_NE(reachable({"nvidia.com/gpu=0"}, "", {"nvidia.com/gpu=all"}).find("allows no GPU"),
            std::string::npos);
  EXPECT_EQ(reachable({"nvidia.com/gpu=1"}, "", {"amd.com/gpu=1"}), "nvidia.com/gpu=1");
}

TEST(CdiNames, with_the_word_of_their_kind_are_held_to_the_job_as_others_are) {
  EXPECT_EQ(reachable({"nvidia.com/gpu=gpu4"}, "4,5"), "nvidia.com/gpu=gpu4");
  EXPECT_EQ(reachable({"nvidia.com/gpu=gpu0"}, "4,5").substr(0, 53),
            "--device nvidia.com/gpu=gpu0: not one of the GPUs of ");
  EXPECT_EQ(reachable({"nvidia.com/gpu=mig1:1"}, "MIG-c1", {}, sliced_machine(3)),
            "nvidia.com/gpu=mig1:1");
  for (const char* other : {"mig1:2", "mig1", "mig0:1", "gpu1:1", "gpu1", "gpu", "part1:7"}) {
    EXPECT_NE(reachable({std::string("nvidia.com/gpu=") + other}, "MIG-c1", {}, sliced_machine(3))
                  .find("not one of the GPUs of"),
              std::string::npos)
        << other;
  }
}

TEST(CdiNames, of_partitions_are_held_to_the_policy) {
  Inventory machine = gpu_machine(2, Vendor::amd);
  machine.gpus[0].partitions.resize(2);
  machine.gpus[0].partitions[1].index = 1;
  EXPECT_EQ(reachable({"amd.com/gpu=part0:1"}, "", {"amd.com/gpu=gpu1"}, machine),
            "amd.com/gpu=part0:1");
  EXPECT_NE(
      reachable({"amd.com/gpu=part0:1"}, "", {"amd.com/gpu=0:1"}, machine).find("does not allow"),
      std::string::npos);
}

TEST(CdiNames, of_other_things_pass) {
  EXPECT_EQ(reachable({"vendor.com/net=a", "amd.com/gpu=0"}, "4,5"),
            "vendor.com/net=a amd.com/gpu=0");
}

TEST(CdiNames, count_the_machine_not_the_job) {
  Inventory machine = gpu_machine(4), job = machine;
  job.gpus.erase(job.gpus.begin(), job.gpus.begin() + 2);
  job.gpus[0].index = 0;
  job.gpus[1].index = 1;
  Request request;
  auto all = reachable_names({"nvidia.com/gpu=all"}, {}, request, machine, job);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(join(*all, " "), "nvidia.com/gpu=2 nvidia.com/gpu=3");
  EXPECT_FALSE(reachable_names({"nvidia.com/gpu=0"}, {}, request, machine, job).ok());
}

TEST(CdiNames, pass_where_nothing_narrows) {
  Choice choice;
  choice.cdi_names = {"nvidia.com/gpu=mine"};
  Machine machine{gpu_machine(2), 0, gpu_machine(2)};
  EXPECT_TRUE(narrow(choice, machine).ok());
  machine.denied = 1;
  EXPECT_FALSE(narrow(choice, machine).ok());
  machine.denied = 0;
  choice.site.never = {"1"};
  EXPECT_FALSE(narrow(choice, machine).ok());
  EXPECT_EQ(choice.request.never, keys_of({"1"}, machine.all()));
}

TEST(CdiNames, of_a_job_that_counts_the_machine_are_not_looked_up_among_what_is_left) {
  Choice choice;
  choice.request.limits =
      find_job(Variables({"SLURM_JOB_ID=1", "SLURM_STEP_GPUS=4,6"}, {}))->limits;
  Machine machine{gpu_machine(2), 6, gpu_machine(8)};
  EXPECT_TRUE(narrow(choice, machine).ok());
  EXPECT_TRUE(choice.request.limits.empty());
}

TEST(CdiNames, a_gpu_that_no_file_defines_is_one_of_the_inventory) {
  Request request;
  std::vector<std::string> names = {"nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1", "v.com/c=d",
                                    "nvidia.com/gpu=2"};
  take_plain_gpus(names, {"nvidia.com/gpu=2"}, "--device", request);
  EXPECT_EQ(names, (std::vector<std::string>{"v.com/c=d", "nvidia.com/gpu=2"}));
  EXPECT_EQ(request.want, Request::Want::devices);
  EXPECT_EQ(request.devices, (std::vector<std::string>{"0", "GPU-1"}));
  names = {"nvidia.com/gpu=gpu3", "nvidia.com/gpu=mig1:0"};
  take_plain_gpus(names, {}, "--device", request);
  EXPECT_EQ(request.devices, (std::vector<std::string>{"0", "GPU-1", "3", "1:0"}));
  names = {"nvidia.com/gpu=all", "nvidia.com/gpu=0"};
  take_plain_gpus(names, {}, "--device", request);
  EXPECT_EQ(request.want, Request::Want::all);
  EXPECT_TRUE(request.devices.empty());
}

}  // namespace
}  // namespace berth::gpu
