// SPDX-License-Identifier: Apache-2.0
#include "engine/run/update_gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::ElementsAre;

oci::Cpu place(std::string cpus, std::string mems) {
  oci::Cpu cpu;
  cpu.cpus = std::move(cpus);
  cpu.mems = std::move(mems);
  return cpu;
}

oci::Spec spec_with(std::vector<std::string> devices, std::vector<std::string> mounts) {
  oci::Spec spec;
  spec.process.emplace();
  spec.linux_.resources.emplace();
  int64_t minor = 0;
  for (std::string& path : devices) {
    spec.linux_.devices.push_back({"c", std::move(path), 195, minor, {}, {}, {}});
    spec.linux_.resources->devices.push_back({true, "c", 195, minor++, "rwm"});
  }
  for (std::string& path : mounts) spec.mounts.push_back({.destination = std::move(path)});
  return spec;
}

const oci::Cpu kWholePlace = place("0-63", "0-1");

TEST(WithDevicesOf, takes_nodes_rules_and_variables_and_nothing_else) {
  oci::Spec before = spec_with({"/dev/nvidia0"}, {"/usr/lib/libcuda.so"});
  before.hostname = "here";
  before.linux_.resources->memory.emplace();
  oci::Spec after = spec_with({"/dev/nvidia0", "/dev/nvidia1"}, {"/usr/lib/libcuda.so"});
  after.process->env = {"NVIDIA_VISIBLE_DEVICES=void"};
  auto both = with_devices_of(before, after, kWholePlace);
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->linux_.devices.size(), 2u);
  EXPECT_EQ(both->linux_.devices[1].path, "/dev/nvidia1");
  EXPECT_EQ(both->linux_.resources->devices.size(), 2u);
  EXPECT_TRUE(both->linux_.resources->memory);
  EXPECT_THAT(both->process->env, ElementsAre("NVIDIA_VISIBLE_DEVICES=void"));
  EXPECT_EQ(both->hostname, "here");
  EXPECT_FALSE(both->linux_.resources->cpu);
}

TEST(WithDevicesOf, refuses_a_file_that_would_have_to_be_mounted) {
  auto both = with_devices_of(spec_with({}, {"/etc/hosts", "/proc/driver"}),
                              spec_with({"/dev/nvidia0"}, {"/proc/other", "/usr/lib/libcuda.so"}),
                              kWholePlace);
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().kind, Kind::unsupported);
  EXPECT_EQ(both.error().what,
            "change its GPUs while it runs: it was started without '/usr/lib/libcuda.so'");
}

TEST(WithDevicesOf, leaves_files_that_are_not_needed_any_more) {
  auto both = with_devices_of(spec_with({"/dev/nvidia0"}, {"/usr/lib/libcuda.so"}),
                              spec_with({}, {}), kWholePlace);
  ASSERT_TRUE(both.ok());
  EXPECT_TRUE(both->linux_.devices.empty());
  EXPECT_EQ(both->mounts.size(), 1u);
}

TEST(WithDevicesOf, moves_it_beside_its_gpus_and_lets_it_go_where_there_is_no_such_place) {
  oci::Spec near = spec_with({}, {}), anywhere = spec_with({}, {});
  near.linux_.resources->cpu = place("0-31", "0");
  auto bound = with_devices_of(anywhere, near, kWholePlace);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->linux_.resources->cpu->cpus, "0-31");
  EXPECT_EQ(bound->linux_.resources->cpu->mems, "0");
  auto free = with_devices_of(near, anywhere, kWholePlace);
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(free->linux_.resources->cpu->cpus, "0-63");
  EXPECT_EQ(free->linux_.resources->cpu->mems, "0-1");
}

TEST(WithDevicesOf, takes_the_place_where_what_is_started_later_begins) {
  oci::Spec before = spec_with({}, {}), after = spec_with({}, {});
  before.annotations = {
      {"dev.berth.processors", "0-3"}, {"dev.berth.memory-nodes", "0"}, {"a", "b"}};
  after.annotations = {{"dev.berth.processors", "4-7"}, {"c", "d"}};
  auto both = with_devices_of(before, after, kWholePlace);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->annotations,
            (std::map<std::string, std::string>{{"dev.berth.processors", "4-7"}, {"a", "b"}}));
}

}  // namespace
}  // namespace berth::engine
