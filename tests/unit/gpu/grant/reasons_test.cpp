// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/reasons.hpp"

#include <gtest/gtest.h>

#include <set>

#include "gpu/grant/request.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

Inventory machine_with_files() {
  Inventory inventory = gpu_machine(2);
  Node control, uvm;
  control.path = "/dev/nvidiactl";
  uvm.path = "/dev/nvidia-uvm";
  inventory.control_nodes = {control, uvm};
  auto add = [&](std::string name, std::string capability, bool elf32) {
    DriverFile file;
    file.name = name + ".so.570.133.20";
    file.soname = name + ".so.1";
    file.host_path = (elf32 ? "/lib32/" : "/lib64/") + file.name;
    file.capabilities = {std::move(capability)};
    file.elf32 = elf32;
    inventory.files.push_back(std::move(file));
  };
  add("libcuda", "compute", false);
  add("libcuda", "compute", true);
  add("libnvidia-ml", "utility", false);
  add("libGLX_nvidia", "graphics", false);
  return inventory;
}

Grant granted(const Inventory& inventory, const std::string& text) {
  auto request = parse_request(text);
  EXPECT_TRUE(request.ok());
  auto grant = make_grant(*request, inventory);
  EXPECT_TRUE(grant.ok());
  complete_reasons(inventory, *grant);
  return *grant;
}

const Reason* find(const Grant& grant, const std::string& object) {
  for (const Reason& reason : grant.reasons) {
    if (reason.object == object) return &reason;
  }
  return nullptr;
}

TEST(Reasons, every_node_file_link_and_variable_has_one) {
  Grant grant = granted(machine_with_files(), "device=0");
  for (const Node& node : grant.nodes) EXPECT_NE(find(grant, node.path), nullptr) << node.path;
  for (const GrantedFile& file : grant.files) {
    const Reason* reason = find(grant, file.container_path);
    ASSERT_NE(reason, nullptr) << file.container_path;
    EXPECT_EQ(reason->host_path, file.host_path);
    EXPECT_TRUE(reason->given);
  }
  for (const GrantedLink& link : grant.links) EXPECT_NE(find(grant, link.path), nullptr);
  for (const std::string& variable : grant.env) EXPECT_NE(find(grant, variable), nullptr);
}

TEST(Reasons, tell_what_was_left_out_and_why) {
  Grant grant = granted(machine_with_files(), "device=0,capabilities=utility");
  const Reason* node = find(grant, "/dev/nvidia6");
  ASSERT_NE(node, nullptr);
  EXPECT_FALSE(node->given);
  EXPECT_EQ(node->why, "GPU 1 was not granted");
  ASSERT_NE(find(grant, "/dev/nvidia-uvm"), nullptr);
  EXPECT_EQ(find(grant, "/dev/nvidia-uvm")->why, "capability compute was not asked for");
  const Reason* library = find(grant, "/lib64/libGLX_nvidia.so.570.133.20");
  ASSERT_NE(library, nullptr);
  EXPECT_FALSE(library->given);
  EXPECT_EQ(library->why, "capability graphics was not asked for");
  EXPECT_EQ(find(grant, "/lib32/libcuda.so.570.133.20")->why,
            "32-bit, and capability compat32 was not asked for");
}

TEST(Reasons, nothing_is_told_twice) {
  Grant grant = granted(machine_with_files(), "all");
  std::set<std::string> objects;
  for (const Reason& reason : grant.reasons) {
    EXPECT_TRUE(objects.insert(reason.object).second) << reason.object;
  }
}

TEST(Reasons, what_has_a_reason_keeps_it) {
  Inventory inventory = machine_with_files();
  auto grant = make_grant(*parse_request("device=0"), inventory);
  ASSERT_TRUE(grant.ok());
  grant->reasons.push_back({"node", "/dev/nvidiactl", true, "of somebody who knows more", {}});
  complete_reasons(inventory, *grant);
  EXPECT_EQ(find(*grant, "/dev/nvidiactl")->why, "of somebody who knows more");
}

TEST(Reasons, a_machine_without_anything_has_none) {
  Grant grant;
  complete_reasons(Inventory{}, grant);
  EXPECT_TRUE(grant.reasons.empty());
}

}  // namespace
}  // namespace berth::gpu
