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

TEST(ContainerEdits, replace_a_mount_at_the_same_destination_and_put_the_deeper_ones_last) {
  Spec spec = spec_with_process();
  spec.mounts = {{.destination = "/", .type = "overlay"}, {.destination = "/a/", .source = "old"}};
  apply({.mounts = {{.destination = "/x/y/z"}, {.destination = "/x"}, {.destination = "//a"}}},
        spec);
  std::vector<std::string> destinations;
  for (const Mount& mount : spec.mounts) destinations.push_back(mount.destination);
  EXPECT_EQ(destinations, (std::vector<std::string>{"/", "/x", "//a", "/x/y/z"}));
}

TEST(ContainerEdits, never_replace_the_mount_of_the_root) {
  Spec spec = spec_with_process();
  spec.mounts = {{.destination = "/", .type = "overlay"}};
  apply({.mounts = {{.destination = "/./"}}}, spec);
  EXPECT_EQ(spec.mounts.at(0).type, "overlay");
}

TEST(ContainerEdits, append_hooks_and_give_interfaces_and_resource_groups) {
  Spec spec = spec_with_process();
  spec.hooks.create_container = {{.path = "/first"}};
  ContainerEdits edits;
  edits.hooks.create_container = {{.path = "/second"}};
  edits.net_devices = {{"eth1", "net0"}};
  edits.intel_rdt = IntelRdt{.clos_id = "gpu"};
  apply(edits, spec);
  ASSERT_EQ(spec.hooks.create_container.size(), 2u);
  EXPECT_EQ(spec.hooks.create_container[1].path, "/second");
  EXPECT_EQ(spec.linux_.net_devices.at("eth1").name, "net0");
  EXPECT_EQ(spec.linux_.intel_rdt->clos_id, "gpu");
}

TEST(ContainerEdits, give_no_cgroup_rule_for_a_fifo_or_where_none_is_asked_for) {
  Spec spec = spec_with_process();
  apply({.device_nodes = {{.path = "/p", .type = "p"}, {.path = "/n", .permissions = "none"}}},
        spec);
  EXPECT_EQ(spec.linux_.devices.size(), 2u);
  EXPECT_FALSE(spec.linux_.resources.has_value());
}

TEST(ContainerEdits, give_a_node_to_the_user_of_the_process_only_when_asked_and_not_to_root) {
  Spec spec = spec_with_process();
  spec.process->user.uid = 7;
  apply({.device_nodes = {{.path = "/a", .owned_by_process = true},
                          {.path = "/b"},
                          {.path = "/c", .uid = 3, .owned_by_process = true}}},
        spec);
  EXPECT_EQ(spec.linux_.devices[0].uid, 7u);
  EXPECT_FALSE(spec.linux_.devices[0].gid.has_value());
  EXPECT_FALSE(spec.linux_.devices[1].uid.has_value());
  EXPECT_EQ(spec.linux_.devices[2].uid, 3u);
}

TEST(ContainerEdits, carry_links_and_loader_entries_as_annotations) {
  Spec spec = spec_with_process();
  ContainerEdits edits;
  edits.links = {{"/usr/lib/libcuda.so", "libcuda.so.1"}};
  edits.loader_entries = {{"libcuda.so.1", "/usr/lib/libcuda.so.1", 0x303}};
  apply(edits, spec);
  EXPECT_EQ(spec.annotations.at("dev.berth.link:/usr/lib/libcuda.so"), "libcuda.so.1");
  edits.loader_entries = {{"libcuda.so.1", "/b/libcuda.so.1", 0x303}, {"libx.so", "/b/libx.so", 3}};
  apply(edits, spec);
  EXPECT_EQ(spec.annotations.at("dev.berth.loader-cache"),
            "libcuda.so.1\t/b/libcuda.so.1\t771\nlibx.so\t/b/libx.so\t3\n");
}

TEST(ContainerEdits, read_loader_entries_of_an_annotation_and_leave_out_what_is_none) {
  std::vector<LoaderLine> entries{{"libcuda.so.1", "/a/b", 771}, {"libx.so", "/x", -1}};
  EXPECT_EQ(loader_entries_of(to_annotation(entries)), entries);
  EXPECT_TRUE(loader_entries_of("").empty());
  EXPECT_TRUE(
      loader_entries_of("a\tb\t3\na\t/b\na\t/b\t99999999999\n\t/b\t3\na\t/\x01\t3").empty());
  EXPECT_EQ(to_annotation({{"a\nb", "/x", 1}}), "");
}

TEST(ContainerEdits, read_a_request_for_compat_libraries_of_an_annotation_or_nothing) {
  CompatRequest request{"570.1", "12.8", "/compat", {"tesla", "geforce"}};
  EXPECT_EQ(compat_request_of(to_annotation(request)), request);
  request = {"", "", "/compat", {}};
  EXPECT_EQ(compat_request_of(to_annotation(request)), request);
  for (const char* text : {"", "/a", "/a\t\t", "a\t1\t2\t", "/a\t1\t2\t3\t4", "/a\n\t1\t2\t"}) {
    EXPECT_FALSE(compat_request_of(text)) << text;
  }
  EXPECT_FALSE(compat_request_of("/" + std::string(5000, 'a') + "\t1\t2\t"));
}

TEST(ContainerEdits, of_two_sources_are_appended_and_the_later_wins) {
  ContainerEdits edits;
  edits.compat = CompatRequest{"1", "", "/a"};
  ContainerEdits more;
  more.compat = CompatRequest{"2", "", "/b"};
  more.env = {"A=1"};
  more.freeze_device_nodes = true;
  append(edits, more);
  EXPECT_EQ(edits.compat->host_driver_version, "2");
  EXPECT_TRUE(edits.freeze_device_nodes);
  EXPECT_FALSE(edits.application_profile);
  EXPECT_EQ(edits.env.size(), 1u);
}

}  // namespace
}  // namespace berth::oci
