// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/pick.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "machine.hpp"

namespace berth::gpu {
namespace {

using testing::ElementsAre;

std::vector<Selected> all_of(const Inventory& inventory) {
  std::vector<Selected> all;
  for (const Gpu& gpu : inventory.gpus) all.push_back({&gpu});
  return all;
}

std::vector<uint32_t> pick(const Inventory& inventory, size_t count, const Occupancy& occupancy) {
  std::vector<uint32_t> indices;
  for (const Selected& one : pick_least_used(all_of(inventory), count, occupancy)) {
    indices.push_back(one.gpu->index);
  }
  return indices;
}

Occupancy used_by_one(const Inventory& inventory, std::initializer_list<uint32_t> indices) {
  Occupancy occupancy;
  for (uint32_t index : indices) {
    occupancy.held.push_back({inventory.gpus[index].pci_address, "somebody", "g", false});
  }
  return occupancy;
}

/// Links 0-3, 1-2, and nothing else.
Inventory linked_machine() {
  Inventory machine = gpu_machine(4);
  machine.gpus[0].nvlink_peers = {3};
  machine.gpus[3].nvlink_peers = {0};
  machine.gpus[1].nvlink_peers = {2};
  machine.gpus[2].nvlink_peers = {1};
  return machine;
}

TEST(PickLeastUsed, takes_the_first_where_all_are_alike) {
  EXPECT_THAT(pick(gpu_machine(4), 2, {}), ElementsAre(0, 1));
}

TEST(PickLeastUsed, passes_over_those_that_somebody_has) {
  Inventory machine = gpu_machine(4);
  EXPECT_THAT(pick(machine, 2, used_by_one(machine, {0, 2})), ElementsAre(1, 3));
}

TEST(PickLeastUsed, takes_used_ones_where_there_are_no_others_and_of_them_the_least_used) {
  Inventory machine = gpu_machine(3);
  EXPECT_THAT(pick(machine, 2, used_by_one(machine, {0, 0, 1, 2})), ElementsAre(1, 2));
}

TEST(PickLeastUsed, takes_those_that_a_link_joins) {
  Inventory machine = linked_machine();
  EXPECT_THAT(pick(machine, 2, {}), ElementsAre(0, 3));
  EXPECT_THAT(pick(machine, 2, used_by_one(machine, {0})), ElementsAre(1, 2));
}

TEST(PickLeastUsed, prefers_an_unused_one_to_a_near_one) {
  Inventory machine = linked_machine();
  EXPECT_THAT(pick(machine, 2, used_by_one(machine, {3, 1})), ElementsAre(0, 2));
}

TEST(PickLeastUsed, prefers_what_is_near_the_processors_to_what_is_near_each_other) {
  Inventory machine = linked_machine();
  for (uint32_t i = 0; i < 4; ++i) machine.gpus[i].numa_node = static_cast<int>(i / 2);
  Occupancy occupancy;
  occupancy.near = {1};
  EXPECT_THAT(pick(machine, 2, occupancy), ElementsAre(2, 3));
}

TEST(PickLeastUsed, stays_on_one_numa_node_without_links) {
  Inventory machine = gpu_machine(4);
  for (uint32_t i = 0; i < 4; ++i) machine.gpus[i].numa_node = i == 1 || i == 3 ? 1 : 0;
  EXPECT_THAT(pick(machine, 2, used_by_one(machine, {0})), ElementsAre(1, 3));
}

TEST(PickLeastUsed, counts_who_has_a_slice_for_its_gpu_and_for_no_other_slice) {
  Inventory machine = sliced_machine(3);
  std::vector<Selected> slices;
  for (const MigDevice& slice : machine.gpus[1].mig) slices.push_back({&machine.gpus[1], &slice});
  Occupancy occupancy;
  occupancy.held.push_back({key_of(slices[0]), "somebody", "g", false});
  EXPECT_THAT(pick_least_used(slices, 2, occupancy), ElementsAre(slices[1], slices[2]));
  EXPECT_EQ(count_users(occupancy, machine.gpus[1].pci_address), 1u);
}

TEST(PickLeastUsed, keeps_what_who_asks_has_already) {
  Inventory machine = gpu_machine(4);
  Occupancy occupancy = used_by_one(machine, {2, 3});
  occupancy.own = {machine.gpus[2].pci_address, machine.gpus[3].pci_address};
  EXPECT_THAT(pick(machine, 1, occupancy), ElementsAre(2));
  EXPECT_THAT(pick(machine, 3, occupancy), ElementsAre(0, 2, 3));
}

TEST(PickLeastUsed, finds_a_set_where_there_are_too_many_to_try_each) {
  Inventory machine = gpu_machine(40);
  for (uint32_t i = 0; i < 40; ++i) machine.gpus[i].numa_node = static_cast<int>(i % 4);
  auto picked = pick(machine, 8, {});
  ASSERT_EQ(picked.size(), 8u);
  for (uint32_t index : picked) EXPECT_EQ(index % 4, picked[0] % 4);
}

}  // namespace
}  // namespace berth::gpu
