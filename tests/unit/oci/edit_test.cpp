// SPDX-License-Identifier: Apache-2.0
#include "oci/edit.hpp"

#include <gtest/gtest.h>

namespace berth::oci {
namespace {

Spec spec_with_process() {
  Spec spec;
  spec.process.emplace();
  return spec;
}

TEST(ContainerEdits, replace_a_variable_of_the_same_name_in_its_place) {
  Spec spec = spec_with_process();
  spec.process->env = {"A=1", "AB=2"};
  apply({.env = {"A=3", "C=4"}}, spec);
  EXPECT_EQ(spec.process->env, (std::vector<std::string>{"A=3", "AB=2", "C=4"}));
}

TEST(ContainerEdits, give_a_device_with_its_cgroup_rule) {
  Spec spec = spec_with_process();
  apply({.device_nodes = {{.path = "/dev/gpu0", .major = 195, .minor = 0}}}, spec);
  ASSERT_EQ(spec.linux_.devices.size(), 1u);
  EXPECT_EQ(spec.linux_.devices[0].major, 195);
  ASSERT_TRUE(spec.linux_.resources.has_value());
  const auto& rule = spec.linux_.resources->devices.at(0);
  EXPECT_TRUE(rule.allow);
  EXPECT_EQ(rule.type, "c");
  EXPECT_EQ(rule.major, 195);
  EXPECT_EQ(rule.minor, 0);
  EXPECT_EQ(rule.access, "rw");
  EXPECT_TRUE(spec.annotations.empty());
}

TEST(ContainerEdits, say_where_the_host_keeps_a_node_of_another_name) {
  Spec spec = spec_with_process();
  apply({.device_nodes = {{.path = "/dev/gpu0", .host_path = "/driver/dev/gpu0"}}}, spec);
  EXPECT_EQ(spec.annotations.at("dev.berth.device-source:/dev/gpu0"), "/driver/dev/gpu0");
}

TEST(ContainerEdits, replace_a_device_of_the_same_path) {
  Spec spec = spec_with_process();
  apply({.device_nodes = {{.path = "/dev/gpu0", .major = 1}}}, spec);
  apply({.device_nodes = {{.path = "/dev/gpu0", .major = 2}}}, spec);
  ASSERT_EQ(spec.linux_.devices.size(), 1u);
  EXPECT_EQ(spec.linux_.devices[0].major, 2);
}

TEST(ContainerEdits, append_mounts_in_order_and_groups_once) {
  Spec spec = spec_with_process();
  spec.mounts = {{.destination = "/a"}};
  spec.process->user.additional_gids = {44};
  apply({.mounts = {{.destination = "/b"}, {.destination = "/c"}}, .additional_gids = {44, 45}},
        spec);
  ASSERT_EQ(spec.mounts.size(), 3u);
  EXPECT_EQ(spec.mounts[2].destination, "/c");
  EXPECT_EQ(spec.process->user.additional_gids, (std::vector<uint32_t>{44, 45}));
}

TEST(ContainerEdits, leave_a_spec_without_process_alone_when_they_do_not_need_one) {
  Spec spec;
  apply({.mounts = {{.destination = "/b"}}}, spec);
  EXPECT_FALSE(spec.process.has_value());
}

}  // namespace
}  // namespace berth::oci
