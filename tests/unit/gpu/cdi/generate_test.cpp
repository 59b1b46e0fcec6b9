// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/cdi/known_hooks.hpp"
#include "json/value.hpp"

namespace berth::gpu::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Node node(const std::string& path, uint32_t major, uint32_t minor) {
  Node out;
  out.path = out.host_path = path;
  out.major = major;
  out.minor = minor;
  return out;
}

Gpu gpu(uint32_t index) {
  Gpu out;
  out.index = index;
  out.minor = 7 - index;
  out.uuid = "GPU-" + std::to_string(index);
  out.pci_address = "0000:0" + std::to_string(index) + ":00.0";
  out.node = node("/dev/nvidia" + std::to_string(out.minor), 195, out.minor);
  return out;
}

Inventory machine() {
  Inventory out;
  out.driver.module_version = out.driver.library_version = "570.133.20";
  out.gpus = {gpu(0), gpu(1)};
  out.control_nodes = {node("/dev/nvidiactl", 195, 255), node("/dev/nvidia-uvm", 510, 0)};
  DriverFile library;
  library.host_path = "/usr/lib64/libcuda.so.570.133.20";
  library.name = "libcuda.so.570.133.20";
  library.soname = "libcuda.so.1";
  library.loader_flags = 0x303;
  library.capabilities = {"compute"};
  out.files = {library};
  return out;
}

GenerateOptions options() {
  GenerateOptions out;
  out.kind = "nvidia.com/gpu";
  out.hook_program = "/usr/libexec/berth/berth-cdi-hook";
  return out;
}

Generated made(const Inventory& inventory, const GenerateOptions& wish) {
  auto result = generate(inventory, wish);
  EXPECT_TRUE(result.ok()) << to_line(result.error());
  return result.ok() ? *result : Generated{};
}

std::vector<std::string> names(const Generated& generated) {
  std::vector<std::string> out;
  for (const auto& device : generated.spec.devices) out.push_back(device.name);
  return out;
}

std::vector<std::string> paths(const oci::cdi::Edits& edits) {
  std::vector<std::string> out;
  for (const auto& one : edits.device_nodes) out.push_back(one.path);
  return out;
}

TEST(Generate, names_no_directory_that_anybody_may_make_later) {
  Inventory inventory = machine();
  DriverFile mps;
  mps.kind = FileKind::directory;
  mps.host_path = mps.container_path = "/tmp/nvidia-mps";
  mps.name = "nvidia-mps";
  mps.capabilities = {"compute"};
  inventory.files.push_back(mps);
  Generated generated = made(inventory, options());
  for (const auto& mount : generated.spec.edits.mounts) EXPECT_NE(mount.host_path, mps.host_path);
  ASSERT_FALSE(generated.warnings.empty());
  EXPECT_THAT(generated.warnings.back(), HasSubstr("'/tmp/nvidia-mps' is not in the file"));
}

TEST(Generate, names_every_gpu_and_all_of_them) {
  Generated file = made(machine(), options());
  EXPECT_THAT(names(file), ElementsAre("0", "GPU-0", "1", "GPU-1", "all"));
  EXPECT_THAT(paths(file.spec.devices[0].edits), ElementsAre("/dev/nvidia7"));
  EXPECT_THAT(paths(file.spec.devices[4].edits), ElementsAre("/dev/nvidia7", "/dev/nvidia6"));
  EXPECT_THAT(paths(file.spec.edits), ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm"));
}

TEST(Generate, names_by_what_is_asked_for) {
  GenerateOptions wish = options();
  wish.namings = {Naming::type_index};
  EXPECT_THAT(names(made(machine(), wish)), ElementsAre("gpu0", "gpu1", "all"));
  EXPECT_EQ(made(machine(), wish).spec.version, "0.4.0");  // no name begins with a digit
}

TEST(Generate, lists_slices_and_not_their_gpu) {
  Inventory inventory = machine();
  MigDevice slice;
  slice.uuid = "MIG-x";
  slice.nodes = {node("/dev/nvidia-caps/nvidia-cap3", 240, 3)};
  inventory.gpus[0].mig_mode = true;
  inventory.gpus[0].mig = {slice};
  Generated file = made(inventory, options());
  EXPECT_THAT(names(file), ElementsAre("0:0", "MIG-x", "1", "GPU-1", "all"));
  EXPECT_THAT(paths(file.spec.devices[0].edits),
              ElementsAre("/dev/nvidia7", "/dev/nvidia-caps/nvidia-cap3"));
  inventory.gpus[0].mig[0].uuid.clear();
  EXPECT_THAT(names(made(inventory, options())), ElementsAre("0:0", "1", "GPU-1", "all"));
}

TEST(Generate, writes_nothing_that_an_old_client_refuses) {
  Generated file = made(machine(), options());
  EXPECT_EQ(file.spec.version, "0.5.0");
  EXPECT_THAT(file.warnings, IsEmpty());
  std::string text = json::dump(oci::cdi::to_document(file.spec));
  EXPECT_EQ(text.find("annotations"), std::string::npos);
  EXPECT_EQ(text.find("additionalGids"), std::string::npos);
}

TEST(Generate, gives_the_same_bytes_for_the_same_machine) {
  EXPECT_EQ(json::dump(oci::cdi::to_document(made(machine(), options()).spec)),
            json::dump(oci::cdi::to_document(made(machine(), options()).spec)));
}

TEST(Generate, leaves_numbers_to_the_reader_where_the_node_exists) {
  Inventory inventory = machine();
  inventory.control_nodes[1].host_path.clear();
  inventory.control_nodes[0].host_path = "/driver/dev/nvidiactl";
  auto file = made(inventory, options());
  const auto& nodes = file.spec.edits.device_nodes;
  EXPECT_EQ(nodes[0].host_path, "/driver/dev/nvidiactl");
  EXPECT_FALSE(nodes[0].major.has_value());
  EXPECT_EQ(nodes[0].permissions, "rw");
  EXPECT_EQ(nodes[1].major, 510);
  EXPECT_EQ(nodes[1].minor, 0);
  EXPECT_EQ(nodes[1].type, "c");
}

TEST(Generate, gives_groups_only_to_who_asks_for_a_version_that_has_them) {
  Inventory inventory = machine();
  inventory.gpus[0].node.mode = 0660;
  inventory.gpus[0].node.gid = 44;
  Generated file = made(inventory, options());
  EXPECT_EQ(file.spec.version, "0.5.0");
  ASSERT_EQ(file.warnings.size(), 1u);
  EXPECT_THAT(file.warnings[0], HasSubstr("'/dev/nvidia7' is for group 44 alone"));
  GenerateOptions wish = options();
  wish.version = "0.7.0";
  file = made(inventory, wish);
  EXPECT_EQ(file.spec.devices[0].edits.additional_gids, std::vector<uint32_t>{44});
  EXPECT_EQ(file.spec.devices.back().edits.additional_gids, std::vector<uint32_t>{44});
  ASSERT_EQ(file.warnings.size(), 1u);
  EXPECT_THAT(file.warnings[0], HasSubstr("CDI 0.7.0 is refused by podman 4.3"));
}

TEST(Generate, declares_what_is_asked_for_but_no_less_than_is_needed) {
  GenerateOptions wish = options();
  wish.version = "0.3.0";
  EXPECT_EQ(to_line(generate(machine(), wish).error()),
            "--cdi-version 0.3.0: the content needs 0.5.0");
  wish.version.reset();
  wish.kind = "nvidia.com/gpu.big";
  Generated file = made(machine(), wish);
  EXPECT_EQ(file.spec.version, "0.6.0");
  ASSERT_EQ(file.warnings.size(), 1u);
}

TEST(Generate, leaves_links_and_the_cache_to_a_hook_that_we_recognise) {
  Generated file = made(machine(), options());
  ASSERT_EQ(file.spec.edits.hooks.size(), 1u);
  EXPECT_EQ(made_for(file.spec), "570.133.20");
  auto known = recognise(file.spec.edits.hooks[0]);
  ASSERT_TRUE(known);
  EXPECT_THAT(known->links, ::testing::Contains(oci::Link{"/usr/local/nvidia/lib64/libcuda.so.1",
                                                          "libcuda.so.570.133.20"}));
  EXPECT_THAT(
      known->loader_entries,
      ElementsAre(oci::LoaderLine{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", 0x303},
                  oci::LoaderLine{"libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1", 0x303},
                  oci::LoaderLine{"libcuda.so.570.133.20",
                                  "/usr/local/nvidia/lib64/libcuda.so.570.133.20", 0x303}));
}

TEST(Generate, leaves_the_parameters_to_the_hook_where_they_let_nodes_be_made) {
  auto freezes = [](bool synthetic, const char* text) {
    Inventory inventory = machine();
    inventory.synthetic = synthetic;
    inventory.proc_texts = {{"nvidia/params", text, {}, {}}};
    return recognise(made(inventory, options()).spec.edits.hooks.at(0))->freeze_device_nodes;
  };
  EXPECT_TRUE(freezes(false, "ModifyDeviceFiles: 1\n"));
  EXPECT_FALSE(freezes(false, "ModifyDeviceFiles: 0\n"));
  EXPECT_FALSE(freezes(true, "ModifyDeviceFiles: 1\n"));  // whose host has no such file
}

TEST(Generate, warns_of_files_of_the_driver_that_cannot_be_used) {
  Inventory broken = machine();
  broken.unusable = {{"/usr/lib64/libnvoptix.so.1", "no ELF file", {"graphics"}}};
  auto generated = generate(broken, options());
  ASSERT_TRUE(generated.ok()) << to_line(generated.error());
  EXPECT_EQ(generated->warnings.front(),
            "the container lacks a file of the driver: '/usr/lib64/libnvoptix.so.1': no ELF file; "
            "see 'berth doctor gpu'");
}

TEST(Generate, refuses_a_machine_without_gpus_and_one_whose_files_do_not_fit) {
  Inventory empty;
  EXPECT_EQ(generate(empty, options()).error().kind, Kind::not_found);
  Inventory other = machine();
  other.driver.library_version = "580.1";
  EXPECT_EQ(generate(other, options()).error().kind, Kind::unsupported);
  other = machine();
  other.files.clear();
  EXPECT_EQ(to_line(generate(other, options()).error()).substr(0, 35),
            "driver 570.133.20 has no libcuda be");
  GenerateOptions amd = options();
  amd.vendor = Vendor::amd;
  EXPECT_EQ(to_line(generate(machine(), amd).error()),
            "no GPU of vendor amd on this machine; try: berth gpu list");
}

TEST(Generate, describes_gpus_of_amd_and_their_partitions_by_nodes_alone) {
  Inventory inventory = machine();
  inventory.amd_control_nodes = {node("/dev/kfd", 235, 0)};
  Gpu whole = gpu(0);
  whole.vendor = Vendor::amd;
  whole.node = node("/dev/dri/renderD128", 226, 128);
  whole.drm_nodes = {node("/dev/dri/card0", 226, 0), whole.node};
  whole.drm_links = {{"/dev/dri/by-path/pci-0000:00:00.0-render", "../renderD128"}};
  Gpu parted = gpu(1);
  parted.vendor = Vendor::amd;
  parted.partitions = {{0, {node("/dev/dri/renderD129", 226, 129)}},
                       {1, {node("/dev/dri/renderD130", 226, 130)}}};
  inventory.gpus.push_back(whole);
  inventory.gpus.push_back(parted);
  GenerateOptions wish = options();
  wish.vendor = Vendor::amd;
  wish.kind = "amd.com/gpu";
  Generated file = made(inventory, wish);
  EXPECT_THAT(names(file), ElementsAre("0", "GPU-0", "1:0", "1:1", "all"));
  EXPECT_THAT(paths(file.spec.edits), ElementsAre("/dev/kfd"));
  EXPECT_THAT(paths(file.spec.devices[0].edits),
              ElementsAre("/dev/dri/card0", "/dev/dri/renderD128"));
  EXPECT_TRUE(file.spec.edits.mounts.empty());
  EXPECT_TRUE(file.spec.edits.env.empty());
  auto known = recognise(file.spec.devices[0].edits.hooks.at(0));
  ASSERT_TRUE(known);
  EXPECT_THAT(known->links,
              ElementsAre(oci::Link{"/dev/dri/by-path/pci-0000:00:00.0-render", "../renderD128"}));
  EXPECT_EQ(file.spec.devices.back().edits.hooks.size(), 1u);
}

}  // namespace
}  // namespace berth::gpu::cdi
