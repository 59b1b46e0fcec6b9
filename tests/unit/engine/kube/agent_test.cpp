// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

gpu::Inventory two() {
  gpu::Inventory inventory;
  for (uint32_t index : {0, 1}) {
    gpu::Gpu one;
    one.index = index;
    one.pci_address = "0000:0" + std::to_string(index + 1) + ":00.0";
    one.uuid = "GPU-" + std::to_string(index);
    one.model = "Tesla K80";
    inventory.gpus.push_back(std::move(one));
  }
  return inventory;
}

gpu::KnownLease lease(const std::string& name, const std::string& engine, const std::string& group,
                      uid_t user = 0) {
  gpu::KnownLease known;
  known.lease = {"c1", name, engine, group, {"0000:01:00.0"}, true};
  known.user = user;
  return known;
}

std::vector<std::string> troubles(const OfferedUnit& unit) {
  std::vector<std::string> out;
  for (const OfferedName& one : unit.names) out.push_back(one.resource + ": " + one.trouble);
  return out;
}

std::vector<OfferedUnit> offered(std::vector<gpu::KnownLease> leases) {
  gpu::Inventory inventory = two();
  return offered_units(inventory, kube::default_resources(inventory), {std::move(leases), {}});
}

TEST(NodeStatus, of_a_gpu_that_a_pod_has_is_healthy_under_that_name_alone) {
  auto units =
      offered({lease("pod default/train (berth.dev/gpu)", gpu::kKubeletEngine, "kubelet:1-1"),
               lease("", "berth-runtime", "sandbox1")});
  EXPECT_THAT(units.at(0).holders, ElementsAre("pod default/train (berth.dev/gpu)"));
  EXPECT_THAT(troubles(units[0]),
              ElementsAre("berth.dev/gpu: ",
                          "berth.dev/gpu.nvidia: held by pod default/train (berth.dev/gpu)",
                          "berth.dev/gpu.nvidia.k80: held by pod default/train (berth.dev/gpu)"));
  EXPECT_THAT(units.at(1).holders, IsEmpty());
}

TEST(NodeStatus, of_a_gpu_that_a_container_has_is_unhealthy) {
  auto units = offered({lease("web", "berth", "c1", 1000)});
  EXPECT_THAT(units.at(0).holders, ElementsAre("container 'web' of user 1000"));
  for (const std::string& one : troubles(units[0])) {
    EXPECT_THAT(one.substr(one.find(": ") + 2), StartsWith("held by container 'web'"));
  }
}

TEST(NodeStatus, believes_no_user_who_says_that_he_is_the_kubelet) {
  auto units = offered({lease("pod a/b (berth.dev/gpu)", gpu::kKubeletEngine, "kubelet:1", 1000)});
  for (const OfferedName& one : units.at(0).names) EXPECT_FALSE(one.trouble.empty());
}

}  // namespace
}  // namespace berth::engine
