// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/placement.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

Numbers numbers(std::string_view text) {
  return parse_numbers(text).value_or(Numbers{});
}

const NumaNodes kTwo = {{0, numbers("0-15,32-47")}, {1, numbers("16-31,48-63")}};
const Allowed kWholeMachine = {numbers("0-63"), numbers("0-3")};

std::vector<gpu::Gpu> gpus_at(std::vector<std::optional<int>> nodes) {
  std::vector<gpu::Gpu> gpus(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) gpus[i].numa_node = nodes[i];
  return gpus;
}

std::optional<Placement> place(const std::vector<gpu::Gpu>& gpus, const NumaNodes& nodes,
                               const Allowed& allowed = kWholeMachine) {
  std::vector<gpu::Selected> selected;
  for (const gpu::Gpu& gpu : gpus) selected.push_back({&gpu});
  return place_beside(selected, nodes, allowed);
}

TEST(Placement, is_beside_the_gpus) {
  EXPECT_EQ(place(gpus_at({1, 1}), kTwo), (Placement{"16-31,48-63", "1"}));
}

TEST(Placement, is_on_each_node_that_has_one) {
  NumaNodes four = {
      {0, numbers("0-1")}, {1, numbers("2-3")}, {2, numbers("4-5")}, {3, numbers("6-7")}};
  EXPECT_EQ(place(gpus_at({3, 0}), four), (Placement{"0-1,6-7", "0,3"}));
}

TEST(Placement, is_none_where_it_is_all_that_is_allowed) {
  EXPECT_EQ(place(gpus_at({0, 1}), kTwo), std::nullopt);
  EXPECT_EQ(place(gpus_at({0}), kTwo, {numbers("0-3"), numbers("0")}), std::nullopt);
}

TEST(Placement, stays_within_what_is_allowed) {
  EXPECT_EQ(place(gpus_at({1}), kTwo, {numbers("10-20"), numbers("0")}), (Placement{"16-20", ""}));
  EXPECT_EQ(place(gpus_at({1}), kTwo, {numbers("0-7"), numbers("0-1")}), std::nullopt);
}

TEST(Placement, is_none_without_a_gpu_or_where_a_node_is_not_known) {
  EXPECT_EQ(place({}, kTwo), std::nullopt);
  EXPECT_EQ(place(gpus_at({1, std::nullopt}), kTwo), std::nullopt);
  EXPECT_EQ(place(gpus_at({-1}), kTwo), std::nullopt);
  EXPECT_EQ(place(gpus_at({2}), kTwo), std::nullopt);
}

TEST(Placement, reads_and_writes_lists_as_the_kernel_does) {
  for (const char* text : {"0", "0-2", "0-2,7", "1,3,5-9"}) EXPECT_EQ(to_text(numbers(text)), text);
  for (const char* text : {"", "a", "3-1", "1-", "-1", "0-99999999", "1,,2"}) {
    EXPECT_EQ(parse_numbers(text), std::nullopt) << text;
  }
}

TEST(Placement, knows_what_this_process_may_use) {
  Allowed allowed = parse_allowed(
      "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,5\n"
      "Mems_allowed_list:\t0\n");
  EXPECT_EQ(to_text(allowed.cpus), "0-3,5");
  EXPECT_EQ(to_text(allowed.mems), "0");
}

TEST(Placement, is_a_limit_by_a_cpuset_and_a_wish_by_affinity) {
  oci::Spec limit, wish;
  set_placement({"0-3", "0"}, KeptBy::cpuset, limit);
  EXPECT_EQ(limit.linux_.resources->cpu->cpus, "0-3");
  EXPECT_EQ(limit.linux_.resources->cpu->mems, "0");
  EXPECT_TRUE(limit.annotations.empty());
  set_placement({"0-3", "0"}, KeptBy::affinity, wish);
  EXPECT_EQ(wish.annotations,
            (std::map<std::string, std::string>{{"dev.berth.processors", "0-3"},
                                                {"dev.berth.memory-nodes", "0"}}));
  EXPECT_FALSE(wish.linux_.resources);
}

TEST(Placement, wishes_for_no_memory_that_cannot_be_had) {
  oci::Spec spec;
  set_placement({"0-3", ""}, KeptBy::affinity, spec);
  EXPECT_EQ(spec.annotations,
            (std::map<std::string, std::string>{{"dev.berth.processors", "0-3"}}));
}

TEST(Placement, knows_the_nodes_that_have_processors) {
  std::filesystem::path root = std::filesystem::temp_directory_path() / "berth-numa-test";
  std::filesystem::path nodes = root / "sys/devices/system/node";
  for (const char* name : {"node0", "node1", "node2", "power"}) {
    std::filesystem::create_directories(nodes / name);
  }
  std::ofstream(nodes / "node0/cpulist") << "0-3\n";
  std::ofstream(nodes / "node1/cpulist") << "4-7\n";
  std::ofstream(nodes / "node2/cpulist") << "\n";
  std::ofstream(nodes / "has_cpu") << "0-1\n";
  auto opened = sys::open_at(sys::cwd(), root, O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(opened.ok());
  auto found = read_numa_nodes(*opened);
  std::filesystem::remove_all(root);
  ASSERT_TRUE(found.ok()) << to_line(found.error());
  EXPECT_EQ(*found, (NumaNodes{{0, numbers("0-3")}, {1, numbers("4-7")}}));
}

}  // namespace
}  // namespace berth::engine
