// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/grant/reach.hpp"

namespace berth::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Gpu gpu(uint32_t index) {
  Gpu one;
  one.index = index;
  one.pci_address = "0000:0" + std::to_string(index + 1) + ":00.0";
  one.node.path = one.node.host_path = "/dev/nvidia" + std::to_string(index);
  one.node.major = 195;
  one.node.minor = index;
  return one;
}

Machine machine(std::vector<Gpu> gpus) {
  Machine out;
  out.ours.driver.module_version = "570.1";
  out.ours.gpus = std::move(gpus);
  return out;
}

std::vector<std::string> kept_back(const Choice& choice, const Machine& machine) {
  std::vector<std::string> paths;
  for (const Node& node : nodes_out_of_reach(choice, machine)) paths.push_back(node.path);
  return paths;
}

TEST(OutOfReach, is_nothing_where_nobody_withholds) {
  EXPECT_THAT(kept_back({}, machine({gpu(0), gpu(1)})), IsEmpty());
}

TEST(OutOfReach, is_what_policy_withholds) {
  Choice choice;
  choice.site.never = {"1"};
  EXPECT_THAT(kept_back(choice, machine({gpu(0), gpu(1)})), ElementsAre("/dev/nvidia1"));
}

TEST(OutOfReach, is_what_is_not_the_jobs) {
  Choice choice;
  Limit limit;
  limit.variable = "CUDA_VISIBLE_DEVICES";
  limit.ids = {"1"};
  choice.request.limits = {limit};
  EXPECT_THAT(kept_back(choice, machine({gpu(0), gpu(1)})), ElementsAre("/dev/nvidia0"));
}

TEST(OutOfReach, leaves_a_gpu_of_which_one_slice_may_be_had) {
  Gpu cut = gpu(0);
  cut.mig_mode = true;
  for (uint32_t index : {0U, 1U}) {
    MigDevice slice;
    slice.index = index;
    slice.gpu_instance = 7 + index;
    Node node;
    node.path = "/dev/nvidia-caps/nvidia-cap" + std::to_string(index);
    slice.nodes = {node};
    cut.mig.push_back(slice);
  }
  Choice choice;
  choice.site.never = {"0:1"};
  EXPECT_THAT(kept_back(choice, machine({cut})), ElementsAre("/dev/nvidia-caps/nvidia-cap1"));
  choice.site.never = {"0"};
  EXPECT_THAT(
      kept_back(choice, machine({cut})),
      ElementsAre("/dev/nvidia-caps/nvidia-cap0", "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia0"));
}

}  // namespace
}  // namespace berth::gpu
