// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/extra_devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/grant/grant.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Node hosted_node(const std::string& path, uint32_t major, uint32_t minor) {
  Node out;
  out.path = out.host_path = path;
  out.major = major;
  out.minor = minor;
  return out;
}

DriverFile file(FileKind kind, const std::string& path) {
  DriverFile out;
  out.kind = kind;
  out.host_path = out.container_path = path;
  return out;
}

Inventory machine_with_all() {
  Inventory machine = gpu_machine(2);
  machine.groups = {
      {"gds",
       {hosted_node("/dev/nvidia-fs0", 384, 0), hosted_node("/dev/nvidia-fs1", 384, 1)},
       {file(FileKind::config, "/etc/cufile.json"), file(FileKind::directory, "/run/udev")},
       {}},
      {"gdrcopy", {hosted_node("/dev/gdrdrv", 383, 0)}, {}, {}},
      {"mofed", {hosted_node("/dev/infiniband/uverbs0", 231, 192)}, {}, {}},
      {"nvswitch", {hosted_node("/dev/nvidia-nvswitchctl", 381, 255)}, {}, {}},
      {"imex",
       {hosted_node("/dev/nvidia-caps-imex-channels/channel1", 240, 1)},
       {file(FileKind::directory, "/run/nvidia-imex")},
       239}};
  machine.mig_control_nodes = {hosted_node("/dev/nvidia-caps/nvidia-cap1", 238, 1),
                               hosted_node("/dev/nvidia-caps/nvidia-cap2", 238, 2)};
  return machine;
}

Request everything() {
  Request request;
  request.want = Request::Want::all;
  request.features = {true, true, true, true, true, true, {1, 7}};
  return request;
}

std::vector<std::string> paths(const std::vector<Node>& nodes) {
  std::vector<std::string> out;
  for (const Node& one : nodes) out.push_back(one.path);
  return out;
}

TEST(ExtraDevices, nothing_is_given_that_was_not_asked_for) {
  Request request;
  request.want = Request::Want::all;
  auto items = find_extra_devices(request, machine_with_all());
  ASSERT_TRUE(items.ok());
  EXPECT_THAT(items->nodes, IsEmpty());
  EXPECT_THAT(items->files, IsEmpty());
  EXPECT_THAT(items->reasons, IsEmpty());
}

TEST(ExtraDevices, each_brings_the_nodes_and_files_of_its_group) {
  auto items = find_extra_devices(everything(), machine_with_all());
  ASSERT_TRUE(items.ok()) << to_line(items.error());
  EXPECT_THAT(paths(items->nodes),
              ElementsAre("/dev/nvidia-fs0", "/dev/nvidia-fs1", "/dev/infiniband/uverbs0",
                          "/dev/gdrdrv", "/dev/nvidia-nvswitchctl", "/dev/nvidia-caps/nvidia-cap1",
                          "/dev/nvidia-caps/nvidia-cap2", "/dev/nvidia-caps-imex-channels/channel1",
                          "/dev/nvidia-caps-imex-channels/channel7"));
  ASSERT_EQ(items->files.size(), 3U);
  EXPECT_EQ(items->reasons.size(), items->nodes.size());
  EXPECT_EQ(items->reasons[0].why, "NVIDIA_GDS asks for it");
  Request one;
  one.features.gdrcopy = true;
  EXPECT_THAT(paths(find_extra_devices(one, machine_with_all())->nodes),
              ElementsAre("/dev/gdrdrv"));
}

TEST(ExtraDevices, a_channel_without_a_node_is_made_from_the_major) {
  auto items = find_extra_devices(everything(), machine_with_all());
  ASSERT_TRUE(items.ok());
  EXPECT_EQ(items->nodes[7].host_path, "/dev/nvidia-caps-imex-channels/channel1");
  const Node& made = items->nodes[8];
  EXPECT_EQ(made.host_path, "");
  EXPECT_EQ(made.major, 239U);
  EXPECT_EQ(made.minor, 7U);
  EXPECT_EQ(made.mode, 0666U);
}

TEST(ExtraDevices, what_the_machine_lacks_is_an_error_only_where_the_user_typed_it) {
  auto items = find_extra_devices(everything(), gpu_machine(2));
  ASSERT_TRUE(items.ok()) << to_line(items.error());
  EXPECT_THAT(items->nodes, IsEmpty());
  ASSERT_EQ(items->reasons.size(), 7U);
  EXPECT_FALSE(items->reasons[0].given);
  EXPECT_EQ(items->reasons[0].why, "this machine has no GPUDirect Storage ('/dev/nvidia-fs0')");
  auto line = [](const std::string& variable) {
    Request request = everything();
    request.demanded = {variable};
    auto refused = find_extra_devices(request, gpu_machine(2));
    return refused.ok() ? "given" : to_line(refused.error());
  };
  EXPECT_EQ(line("NVIDIA_GDRCOPY"),
            "NVIDIA_GDRCOPY: this machine has no GDRCopy ('/dev/gdrdrv'); try: modprobe gdrdrv");
  EXPECT_EQ(line("NVIDIA_IMEX_CHANNELS"),
            "NVIDIA_IMEX_CHANNELS: this machine has no IMEX channels ('nvidia-caps-imex-channels' "
            "in '/proc/devices'); try: berth gpu list");
  EXPECT_EQ(line("NVIDIA_MIG_CONFIG_DEVICES"),
            "NVIDIA_MIG_CONFIG_DEVICES: this machine has no GPU in MIG mode; try: nvidia-smi -mig "
            "1");
}

TEST(ExtraDevices, come_beside_the_gpus_and_without_files_where_an_image_brings_its_own) {
  Inventory machine = machine_with_all();
  machine.files.emplace_back().name = "libcuda.so.570.133.20";  // of no capability here
  auto grant = make_grant(everything(), machine);
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(paths(grant->nodes), Contains("/dev/gdrdrv"));
  ASSERT_EQ(grant->files.size(), 3U);
  EXPECT_EQ(grant->files[1].kind, FileKind::directory);
  auto bare = make_grant(everything(), machine, {policy::DriverMode::none, nullptr, true, {}});
  EXPECT_THAT(paths(bare->nodes), Contains("/dev/gdrdrv"));
  EXPECT_THAT(bare->files, IsEmpty());
  // What comes and goes in a directory cannot be copied.
  auto copied = make_grant(everything(), machine, {policy::DriverMode::copy, nullptr, true, {}});
  ASSERT_EQ(copied->files.size(), 1U);
  EXPECT_EQ(copied->files[0].container_path, "/etc/cufile.json");
}

// ---- other vendors
// -------------------------------------------------------------------------------

Inventory drm_machine(Vendor vendor) {
  Inventory machine;
  for (uint32_t i = 0; i < 2; ++i) {
    Gpu gpu = make_gpu(vendor, i);
    gpu.node = hosted_node("/dev/dri/renderD" + std::to_string(128 + i), 226, 128 + i);
    gpu.drm_nodes = {hosted_node("/dev/dri/card" + std::to_string(i), 226, i), gpu.node};
    gpu.drm_links = {{"/dev/dri/by-path/pci-" + gpu.pci_address + "-render",
                      "../renderD" + std::to_string(128 + i)}};
    machine.gpus.push_back(gpu);
  }
  if (vendor == Vendor::amd) machine.amd_control_nodes = {hosted_node("/dev/kfd", 300, 0)};
  return machine;
}

Inventory partitioned_machine() {
  Inventory machine = drm_machine(Vendor::amd);
  Gpu& gpu = machine.gpus[1];
  gpu.compute_partition = "CPX";
  gpu.partitions = {
      {0, gpu.drm_nodes},
      {1, {hosted_node("/dev/dri/card2", 226, 2), hosted_node("/dev/dri/renderD130", 226, 130)}}};
  return machine;
}

Result<Grant> ask_of(const std::string& text, const Inventory& machine) {
  auto request = parse_request(text);
  EXPECT_TRUE(request.ok());
  return make_grant(*request, machine);
}

std::string refusal(const std::string& text, const Inventory& machine) {
  auto grant = ask_of(text, machine);
  return grant.ok() ? "granted" : to_line(grant.error());
}

TEST(OtherVendors, get_their_nodes_and_neither_files_nor_variables_of_nvidia) {
  auto amd = ask_of("device=1", drm_machine(Vendor::amd));
  ASSERT_TRUE(amd.ok()) << to_line(amd.error());
  EXPECT_EQ(amd->vendor, Vendor::amd);
  EXPECT_THAT(paths(amd->nodes), ElementsAre("/dev/dri/renderD129", "/dev/dri/card1", "/dev/kfd"));
  EXPECT_EQ(amd->node_links.size(), 1U);
  EXPECT_THAT(amd->env, IsEmpty());
  EXPECT_THAT(amd->files, IsEmpty());
  auto intel = ask_of("all", drm_machine(Vendor::intel));
  ASSERT_TRUE(intel.ok()) << to_line(intel.error());
  EXPECT_THAT(paths(intel->nodes), ElementsAre("/dev/dri/renderD128", "/dev/dri/card0",
                                               "/dev/dri/renderD129", "/dev/dri/card1"));
}

TEST(OtherVendors, are_not_held_to_what_nvidia_images_require) {
  auto request = parse_request("all");
  request->requirements = {{"NVIDIA_REQUIRE_CUDA", "cuda>=99"}};
  EXPECT_TRUE(make_grant(*request, drm_machine(Vendor::amd)).ok());
  EXPECT_FALSE(make_grant(*request, gpu_machine(1)).ok());
}

TEST(OtherVendors, a_mixed_machine_gives_those_of_the_driver_that_was_named) {
  Inventory machine = gpu_machine(1);
  for (const Gpu& gpu : drm_machine(Vendor::amd).gpus) machine.gpus.push_back(gpu);
  machine.amd_control_nodes = {hosted_node("/dev/kfd", 300, 0)};
  machine.files.emplace_back().name = "libcuda.so.570.133.20";
  auto grant = ask_of("driver=amd,count=1", machine);
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(paths(grant->nodes), Not(Contains("/dev/nvidia7")));
  EXPECT_THAT(paths(grant->nodes), Contains("/dev/kfd"));
  EXPECT_THAT(paths(ask_of("all", machine)->nodes), Not(Contains("/dev/kfd")));
}

TEST(Partitions, each_is_granted_with_nodes_of_its_own) {
  auto grant = ask_of("device=1:1", partitioned_machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(paths(grant->nodes),
              ElementsAre("/dev/dri/card2", "/dev/dri/renderD130", "/dev/kfd"));
  EXPECT_EQ(
      refusal("device=1", partitioned_machine()),
      "--gpus device=1: the GPU is in mode CPX, its 2 partitions are granted one by one; try: "
      "--gpus device=1:0");
  EXPECT_EQ(refusal("device=1:2", partitioned_machine()),
            "--gpus device=1:2: GPU 1 has 2 partitions; try: berth gpu list");
  EXPECT_EQ(refusal("4", partitioned_machine()),
            "--gpus 4: this machine has 3 GPUs; try: berth gpu list");
  EXPECT_EQ(ask_of("all", partitioned_machine())->nodes.size(), 7U);
}

TEST(Partitions, the_policy_withholds_one_alone) {
  auto request = parse_request("all");
  request->never = {"0000:11:00.0/1"};
  auto grant = make_grant(*request, partitioned_machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(paths(grant->nodes), Not(Contains("/dev/dri/renderD130")));
  EXPECT_THAT(paths(grant->nodes), Contains("/dev/dri/renderD129"));
}

TEST(Partitions, a_job_counts_them_as_rocm_does) {
  auto request = parse_request("all");
  request->limits = {
      {.variable = "ROCR_VISIBLE_DEVICES", .value = "2", .ids = {"2"}, .vendors = {}}};
  auto grant = make_grant(*request, partitioned_machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(paths(grant->nodes),
              ElementsAre("/dev/dri/card2", "/dev/dri/renderD130", "/dev/kfd"));
}

}  // namespace
}  // namespace berth::gpu
