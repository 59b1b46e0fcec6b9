// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/amd_use.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using testing::inventory_of;
using testing::write_text;

constexpr size_t kGpu = 2;  // the one that the tests change

class AmdUse : public ::testing::Test {
 protected:
  void tell(const std::string& file, const std::string& text) {
    write_text(tree_.root() + "/sys/bus/pci/devices/0000:49:00.0/" + file, text);
  }
  void compute(const std::string& pid, const std::string& node, const std::string& bytes) {
    write_text(tree_.root() + kKfd + "proc/" + pid + "/vram_" + node, bytes);
  }
  void remove(const std::string& path) { std::filesystem::remove_all(tree_.root() + path); }
  Use use(size_t gpu = kGpu) const {
    Uses uses;
    add_amd_uses(inventory_of(tree_), uses);
    return uses.gpus.at(gpu);
  }

  const std::string kKfd = "/sys/class/kfd/kfd/";
  const std::string kSensors = "hwmon/hwmon5/";
  DriverTree tree_{"amd"};
};

std::string text(const Use& use) {
  auto number = [](auto value) { return value ? std::to_string(*value) : "?"; };
  return number(use.busy_percent) + "% " + number(use.celsius) + "C " + number(use.milliwatts) +
         "mW";
}

std::string processes(const Use& use) {
  if (!use.processes) return "?";
  std::string all;
  for (const ProcessUse& one : *use.processes)
    all += std::to_string(one.pid) + ":" + std::to_string(one.used_bytes.value_or(0)) + " ";
  return all;
}

TEST_F(AmdUse, is_what_the_kernel_tells_of_each_gpu) {
  tell("gpu_busy_percent", "63\n");
  tell("mem_info_vram_used", "3221225472\n");
  tell(kSensors + "temp1_input", "58000\n");
  tell(kSensors + "temp2_input", "71000\n");
  tell(kSensors + "power1_average", "304500000\n");
  tell(kSensors + "power1_input", "1000000\n");
  Use found = use();
  EXPECT_EQ(found.pci_address, "0000:49:00.0");
  EXPECT_EQ(text(found), "63% 58C 304500mW");
  ASSERT_TRUE(found.memory.has_value());
  EXPECT_EQ(found.memory->used, 3221225472U);
  EXPECT_EQ(found.memory->total, 68702699520U);
  EXPECT_EQ(processes(found), "");
  EXPECT_EQ(text(use(3)), "0% 41C 92000mW");
}

TEST_F(AmdUse, takes_the_other_sensor_where_there_is_but_that) {
  remove("/sys/bus/pci/devices/0000:49:00.0/hwmon");
  tell(kSensors + "temp2_input", "71000\n");
  tell(kSensors + "power1_input", "550000000\n");
  EXPECT_EQ(text(use()), "0% 71C 550000mW");
}

TEST_F(AmdUse, what_is_not_told_is_not_known) {
  for (const char* name : {"hwmon", "gpu_busy_percent", "mem_info_vram_used", "power"})
    remove(std::string("/sys/bus/pci/devices/0000:49:00.0/") + name);
  remove(kKfd + "proc");
  Use found = use();
  EXPECT_EQ(text(found), "?% ?C ?mW");
  EXPECT_FALSE(found.memory.has_value());
  EXPECT_EQ(processes(found), "?");
}

TEST_F(AmdUse, lies_are_no_figures) {
  tell("gpu_busy_percent", "65535\n");
  tell("mem_info_vram_used", "many\n");
  tell(kSensors + "temp1_input", "-5000\n");
  tell(kSensors + "power1_average", "18446744073709551615\n");
  compute("12", "4003", "-1\n");
  compute("self", "4003", "7\n");
  Use found = use();
  EXPECT_EQ(text(found), "?% ?C ?mW");
  EXPECT_FALSE(found.memory.has_value());
  EXPECT_EQ(processes(found), "");
}

TEST_F(AmdUse, a_gpu_that_sleeps_is_not_woken) {
  tell("power/runtime_status", "suspended\n");
  Use found = use();
  EXPECT_EQ(text(found), "?% ?C ?mW");
  EXPECT_TRUE(found.memory.has_value());
}

TEST_F(AmdUse, its_processes_are_those_that_have_memory_there) {
  compute("1200", "4003", "2147483648\n");
  compute("1200", "4004", "0\n");
  compute("77", "4003", "4096\n");
  compute("77", "4004", "8192\n");
  EXPECT_EQ(processes(use(2)), "77:4096 1200:2147483648 ");
  EXPECT_EQ(processes(use(3)), "77:8192 ");
  EXPECT_EQ(processes(use(4)), "");
}

TEST_F(AmdUse, without_its_node_of_kfd_nobody_knows_its_processes) {
  compute("77", "4003", "4096\n");
  remove(kKfd + "topology/nodes/3");
  EXPECT_EQ(processes(use()), "?");
}

TEST(AmdUses, what_runs_on_partitions_counts_for_their_gpu) {
  DriverTree tree("amd", "--partitions 4");
  const std::string process = tree.root() + "/sys/class/kfd/kfd/proc/77/vram_";
  for (const char* node : {"4001", "4005", "4008"}) write_text(process + node, "1000\n");
  Uses uses;
  add_amd_uses(inventory_of(tree), uses);
  ASSERT_EQ(uses.gpus.size(), 8U);
  EXPECT_EQ(processes(uses.gpus[0]), "77:1000 ");
  EXPECT_EQ(processes(uses.gpus[1]), "77:2000 ");
}

TEST(AmdUses, are_added_to_what_others_have_told_and_of_amds_gpus_alone) {
  Uses uses;
  uses.gpus.emplace_back().pci_address = "0000:1b:00.0";
  add_amd_uses(inventory_of(DriverTree("intel")), uses);
  EXPECT_EQ(uses.gpus.size(), 1U);
  add_amd_uses(inventory_of(DriverTree("amd")), uses);
  ASSERT_EQ(uses.gpus.size(), 9U);
  EXPECT_EQ(uses.gpus[0].pci_address, "0000:1b:00.0");
}

}  // namespace
}  // namespace berth::gpu
