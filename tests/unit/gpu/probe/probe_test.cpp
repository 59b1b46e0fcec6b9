// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "gpu/inventory/cache.hpp"
#include "json/fields.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu {
namespace {

using ::testing::Contains;
using testing::DriverTree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Scratch;
using ::testing::StartsWith;
using testing::with_nvml;

class Warnings final : public Log {
 public:
  void warn(const std::string& text) override { lines.push_back(text); }
  void debug(const std::string&) override {}
  std::vector<std::string> lines;
};

ProbeOptions options_for(const DriverTree& tree, bool nvml) {
  ProbeOptions options;
  options.driver_root = tree.root();
  if (nvml) options.probe_program = testing::build_directory() + "/bin/berth-gpu-probe";
  return options;
}

Inventory inventory_of(const DriverTree& tree, bool nvml = false) {
  NullLog log;
  auto inventory = probe(options_for(tree, nvml), log);
  EXPECT_TRUE(inventory.ok()) << to_line(inventory.error());
  return inventory.ok() ? *inventory : Inventory{};
}

const DriverFile* find_file(const Inventory& inventory, const std::string& name,
                            bool elf32 = false) {
  for (const DriverFile& file : inventory.files) {
    if (file.name == name && file.elf32 == elf32) return &file;
  }
  return nullptr;
}

TEST(Probe, finds_eight_gpus_by_pci_address_whatever_their_minors) {
  Inventory inventory = inventory_of(DriverTree("eight"));
  EXPECT_TRUE(inventory.synthetic);
  ASSERT_EQ(inventory.gpus.size(), 8U);
  std::vector<uint32_t> minors;
  for (const Gpu& gpu : inventory.gpus) minors.push_back(gpu.minor);
  EXPECT_THAT(minors, ElementsAre(2, 5, 0, 7, 1, 4, 3, 6));
  const Gpu& gpu = inventory.gpus[2];
  EXPECT_EQ(gpu.pci_address, "0000:52:00.0");
  EXPECT_EQ(gpu.node.path, "/dev/nvidia0");
  EXPECT_EQ(gpu.node.major, 195U);
  EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
  EXPECT_THAT(gpu.uuid, StartsWith("GPU-"));
  EXPECT_EQ(gpu.numa_node, 0);
  EXPECT_EQ(inventory.gpus[7].numa_node, 1);
  EXPECT_EQ(gpu.drm_nodes.size(), 2U);
  EXPECT_FALSE(gpu.compute_capability.has_value());
}

TEST(Probe, works_without_nvml) {
  Inventory inventory = inventory_of(DriverTree("one"));
  EXPECT_EQ(inventory.nvml, "missing");
  EXPECT_EQ(inventory.driver.module_version, "570.133.20");
  EXPECT_EQ(inventory.driver.library_version, "570.133.20");
  EXPECT_EQ(inventory.driver.cuda_version, "12.8");
  EXPECT_EQ(inventory.driver.cuda_source, "branch");
}

TEST(Probe, nvml_adds_what_only_it_knows) {
  Inventory inventory = inventory_of(DriverTree("mig", with_nvml()), true);
  EXPECT_EQ(inventory.nvml, "ok");
  EXPECT_EQ(inventory.driver.cuda_source, "nvml");
  ASSERT_EQ(inventory.gpus.size(), 1U);
  const Gpu& gpu = inventory.gpus[0];
  EXPECT_EQ(gpu.compute_capability, "9.0");
  EXPECT_EQ(gpu.memory_bytes, 85520809984U);
  EXPECT_EQ(gpu.brand, "nvidia");
  ASSERT_EQ(gpu.mig.size(), 7U);
  EXPECT_THAT(gpu.mig[0].uuid, StartsWith("MIG-"));
  EXPECT_EQ(gpu.mig[6].profile, "1g.10gb");
}

TEST(Probe, finds_slices_and_their_nodes_without_nvml) {
  Inventory inventory = inventory_of(DriverTree("mig", "--caps-major 240"));
  ASSERT_EQ(inventory.gpus.size(), 1U);
  ASSERT_EQ(inventory.gpus[0].mig.size(), 7U);
  const MigDevice& slice = inventory.gpus[0].mig[0];
  EXPECT_EQ(slice.gpu_instance, 7U);
  EXPECT_EQ(slice.uuid, "");
  ASSERT_EQ(slice.nodes.size(), 2U);
  // 3 + gpu · 135 + instance · 9, and one more for the first compute instance.
  EXPECT_EQ(slice.nodes[0].path, "/dev/nvidia-caps/nvidia-cap66");
  EXPECT_EQ(slice.nodes[1].path, "/dev/nvidia-caps/nvidia-cap67");
  EXPECT_EQ(slice.nodes[0].major, 240U);
  EXPECT_EQ(inventory.gpus[0].mig[6].gpu_instance, 13U);  // after 7, 8, 9: as numbers, not as text
}

TEST(Probe, a_library_that_is_no_nvml_costs_detail_only) {
  DriverTree tree("one");  // its libnvidia-ml has no code
  Warnings log;
  auto inventory = probe(options_for(tree, true), log);
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  EXPECT_EQ(inventory->nvml, "this library has no nvmlInit_v2");
  EXPECT_THAT(
      log.lines,
      ElementsAre("NVML: this library has no nvmlInit_v2, using procfs and file names instead"));
  EXPECT_EQ(inventory->gpus.size(), 1U);
}

TEST(Probe, an_nvml_that_fails_costs_detail_only) {
  Inventory inventory =
      inventory_of(DriverTree("one", with_nvml() + "--nvml-mode init-fail"), true);
  EXPECT_EQ(inventory.nvml, "nvmlInit_v2: Driver Not Loaded");
  EXPECT_EQ(inventory.gpus.size(), 1U);
}

TEST(Probe, an_nvml_that_hangs_is_killed_at_the_deadline) {
  DriverTree tree("one", with_nvml() + "--nvml-mode hang");
  ProbeOptions options = options_for(tree, true);
  options.nvml_deadline = std::chrono::milliseconds(300);
  NullLog log;
  auto before = std::chrono::steady_clock::now();
  auto inventory = probe(options, log);
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  EXPECT_EQ(inventory->nvml, "no answer within 300 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
}

TEST(Probe, takes_the_libraries_of_the_loaded_module_and_no_decoy) {
  DriverTree tree("one");
  Inventory inventory = inventory_of(tree);
  const DriverFile* cuda = find_file(inventory, "libcuda.so.570.133.20");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->host_path, tree.libraries() + "/libcuda.so.570.133.20");
  EXPECT_EQ(cuda->soname, "libcuda.so.1");
  EXPECT_EQ(cuda->loader_flags, 0x303);
  EXPECT_THAT(cuda->capabilities, Contains("compute"));
  EXPECT_EQ(find_file(inventory, "libcuda.so.390.157"), nullptr);
  EXPECT_EQ(find_file(inventory, "libnvidia-text.so.570.133.20"), nullptr);
  EXPECT_EQ(find_file(inventory, "libGL.so.1.7.0"), nullptr);
  ASSERT_NE(find_file(inventory, "libcuda.so.570.133.20", true), nullptr);
  const DriverFile* own = find_file(inventory, "libnvidia-gpucomp.so.570.133.20");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->soname, "libnvidia-gpucomp.so.570.133.20");
  EXPECT_NE(find_file(inventory, "libvdpau_nvidia.so.570.133.20"), nullptr);
  EXPECT_NE(find_file(inventory, "libnvidia-egl-gbm.so.1.1.2"), nullptr);
  EXPECT_NE(find_file(inventory, "nvidia-smi"), nullptr);
  EXPECT_EQ(find_file(inventory, "nvidia-modprobe"), nullptr);  // setuid: never given
  EXPECT_NE(find_file(inventory, "nvidia.icd"), nullptr);
}

TEST(Probe, finds_the_libraries_wherever_distributions_keep_them) {
  for (const char* directory : {"usr/lib64", "usr/lib", "usr/lib/x86_64-linux-gnu/nvidia/current",
                                "run/opengl-driver/lib", "home/kubernetes/bin/nvidia/lib64"}) {
    Inventory inventory =
        inventory_of(DriverTree("one", std::string("--cache none --libdir ") + directory));
    EXPECT_NE(find_file(inventory, "libcuda.so.570.133.20"), nullptr) << directory;
  }
}

TEST(Probe, finds_a_directory_that_only_the_loader_cache_names) {
  for (const char* cache : {"new", "both"}) {
    DriverTree tree("one", std::string("--libdir opt/driver/lib --cache ") + cache);
    std::filesystem::remove_all(tree.root() + "/etc/ld.so.conf.d");
    EXPECT_NE(find_file(inventory_of(tree), "libcuda.so.570.133.20"), nullptr) << cache;
  }
}

TEST(Probe, a_link_cannot_lead_out_of_the_driver_root) {
  DriverTree tree("one");
  Scratch outside;
  testing::write_text(outside.path() + "/nvidia-smi", "#!/bin/sh\n");
  std::filesystem::remove(tree.root() + "/usr/bin/nvidia-smi");
  std::filesystem::create_symlink(outside.path() + "/nvidia-smi",
                                  tree.root() + "/usr/bin/nvidia-smi");
  EXPECT_EQ(find_file(inventory_of(tree), "nvidia-smi"), nullptr);
}

TEST(Probe, tells_files_of_another_version_than_the_module) {
  Inventory inventory = inventory_of(DriverTree("one", "--library-version 535.54.03"));
  EXPECT_EQ(inventory.driver.module_version, "570.133.20");
  EXPECT_EQ(inventory.driver.library_version, "535.54.03");
  EXPECT_THAT(inventory.problems, Contains("driver files are 535.54.03 but the kernel module is "
                                           "570.133.20; try: reboot or reload the module"));
}

TEST(Probe, a_machine_without_a_module_has_no_gpus) {
  Inventory inventory = inventory_of(DriverTree("one", "--no-module"));
  EXPECT_EQ(inventory.driver.module_version, "");
  EXPECT_EQ(inventory.driver.library_version, "570.133.20");
  EXPECT_THAT(inventory.gpus, IsEmpty());
  EXPECT_THAT(inventory.control_nodes, IsEmpty());
}

TEST(Probe, a_driver_root_without_anything_is_an_empty_inventory) {
  Scratch scratch;
  testing::write_text(scratch.path() + "/SYNTHETIC", "");
  ProbeOptions options;
  options.driver_root = scratch.path();
  NullLog log;
  auto inventory = probe(options, log);
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  EXPECT_THAT(inventory->gpus, IsEmpty());
  EXPECT_THAT(inventory->files, IsEmpty());
  EXPECT_THAT(inventory->problems, ElementsAre("no NVIDIA driver was found on this machine"));
}

TEST(Probe, says_that_a_driver_root_is_absent) {
  ProbeOptions options;
  options.driver_root = "/no/such/root";
  NullLog log;
  EXPECT_EQ(to_line(probe(options, log).error()),
            "cannot read the driver root '/no/such/root': open '/no/such/root': No such file or "
            "directory");
  options.driver_root = "relative";
  EXPECT_EQ(to_line(probe(options, log).error()), "driver root 'relative': not an absolute path");
}

TEST(Probe, a_missing_uuid_and_a_missing_uvm_are_said_and_survived) {
  Inventory inventory = inventory_of(DriverTree("one", "--no-uuid --no-uvm"));
  ASSERT_EQ(inventory.gpus.size(), 1U);
  EXPECT_EQ(inventory.gpus[0].uuid, "");
  EXPECT_THAT(
      inventory.problems,
      Contains(
          "the module nvidia-uvm is not loaded, CUDA will not start; try: modprobe nvidia-uvm"));
}

TEST(Probe, an_excluded_gpu_is_not_counted) {
  Inventory inventory = inventory_of(DriverTree("eight", "--excluded 0"));
  ASSERT_EQ(inventory.gpus.size(), 7U);
  EXPECT_EQ(inventory.gpus[0].pci_address, "0000:43:00.0");
  EXPECT_EQ(inventory.gpus[0].index, 0U);
  EXPECT_EQ(inventory.left_out, 1U);
  EXPECT_THAT(inventory.problems, Contains("the driver excludes the GPU at 0000:1b:00.0"));
}

TEST(Probe, a_gpu_without_a_node_here_is_somebody_elses) {
  DriverTree tree("eight");
  testing::write_text(tree.root() + "/dev/nodes",
                      "/dev/nvidia5 195 5 666\n/dev/nvidiactl 195 255 666\n");
  Inventory inventory = inventory_of(tree);
  ASSERT_EQ(inventory.gpus.size(), 1U);
  EXPECT_EQ(inventory.gpus[0].minor, 5U);
  EXPECT_EQ(inventory.left_out, 7U);
  EXPECT_THAT(inventory.problems,
              Contains("the GPU at 0000:1b:00.0 has no '/dev/nvidia2' here, leaving it out"));
}

TEST(Probe, a_file_in_the_place_of_a_node_is_ignored) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/dev/nvidiactl", "no device\n");
  Inventory inventory = inventory_of(tree);
  EXPECT_THAT(inventory.problems,
              Contains("'" + tree.root() +
                       "/dev/nvidiactl' is not the character device 195:255, ignoring it"));
}

TEST(Probe, a_damaged_node_table_is_an_error_with_its_line) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/dev/nodes", "/dev/nvidia0 195\n");
  NullLog log;
  auto inventory = probe(options_for(tree, false), log);
  ASSERT_FALSE(inventory.ok());
  EXPECT_EQ(to_line(inventory.error()),
            "cannot read the driver's devices: cannot read '" + tree.root() +
                "/dev/nodes': expected 'path major minor mode', got '/dev/nvidia0 "
                "195'");
}

TEST(Probe, an_inventory_survives_being_written_and_read) {
  Inventory inventory = inventory_of(DriverTree("mig"));
  std::string text = json::write(inventory);
  auto read = json::read<Inventory>(text, "inventory");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(json::write(*read), text);
}

// ---- the cache ----------------------------------------------------------------------------------

class Cache : public ::testing::Test {
 protected:
  Result<Inventory> ask(Refresh refresh = Refresh::if_stale) {
    ProbeOptions options = options_for(tree_, false);
    options.state_dir = state_.path();
    return cached_inventory(options, refresh, log_);
  }
  std::string file() const { return state_.path() + "/gpu/" + cache_name(tree_.root()); }
  /// Marks the cached inventory, so that a later answer shows where it came from.
  void mark() {
    auto cached = json::read<CachedInventory>(testing::read_text(file()), "cache");
    ASSERT_TRUE(cached.ok()) << to_line(cached.error());
    cached->inventory.nvml = "marked";
    testing::write_text(file(), json::write(*cached));
  }
  bool is_cached() { return ask().value().nvml == "marked"; }

  DriverTree tree_{"mig"};
  Scratch state_;
  Warnings log_;
};

TEST_F(Cache, answers_until_something_changes) {
  ASSERT_TRUE(ask().ok());
  mark();
  EXPECT_TRUE(is_cached());
  EXPECT_EQ(ask(Refresh::always)->nvml, "missing");
}

TEST_F(Cache, notices_another_module) {
  ASSERT_TRUE(ask().ok());
  mark();
  testing::write_text(tree_.root() + "/sys/module/nvidia/version", "580.65.06\n");
  EXPECT_EQ(ask()->driver.module_version, "580.65.06");
}

TEST_F(Cache, notices_other_majors) {
  ASSERT_TRUE(ask().ok());
  mark();
  testing::write_text(tree_.root() + "/proc/devices",
                      "Character devices:\n195 nvidia\n300 nvidia-uvm\n");
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_an_upgraded_library) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::last_write_time(
      tree_.libraries() + "/libcuda.so.570.133.20",
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_a_slice_that_is_gone) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::remove_all(tree_.root() + "/proc/driver/nvidia/capabilities/gpu0/mig/gi9");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->gpus[0].mig.size(), 6U);
}

TEST_F(Cache, does_not_keep_what_was_found_while_the_machine_changed) {
  DriverTree tree("one", with_nvml());
  std::string program = state_.path() + "/probe";
  testing::write_text(program, "#!/bin/sh\necho 580.65.06 > '" + tree.root() +
                                   "/sys/module/nvidia/version'\nexit 1\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ProbeOptions options = options_for(tree, false);
  options.state_dir = state_.path();
  options.probe_program = program;
  auto cached = [&] {
    EXPECT_TRUE(cached_inventory(options, Refresh::if_stale, log_).ok());
    return std::filesystem::exists(state_.path() + "/gpu/" + cache_name(tree.root()));
  };
  EXPECT_FALSE(cached());
  EXPECT_TRUE(cached());  // the second time it is as it was
}

TEST_F(Cache, a_damaged_file_is_made_anew) {
  ASSERT_TRUE(ask().ok());
  testing::write_text(file(), "{\"format\": 1, \"sentin");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  EXPECT_EQ(inventory->gpus.size(), 1U);
  EXPECT_THAT(testing::read_text(file()), HasSubstr("\"fingerprint\""));
}

TEST_F(Cache, a_directory_that_can_not_be_made_is_a_warning) {
  testing::write_text(state_.path() + "/gpu", "in the way");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], StartsWith("cannot cache the GPU inventory: "));
}

TEST_F(Cache, many_at_once_get_the_same_answer) {
  std::vector<std::thread> threads;
  std::vector<size_t> slices(8);
  for (size_t& count : slices) {
    threads.emplace_back([this, &count] {
      ProbeOptions options = options_for(tree_, false);
      options.state_dir = state_.path();
      NullLog log;
      auto inventory = cached_inventory(options, Refresh::if_stale, log);
      count = inventory.ok() ? inventory->gpus[0].mig.size() : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(slices, ElementsAre(7, 7, 7, 7, 7, 7, 7, 7));
}

TEST(CacheName, differs_for_every_root) {
  EXPECT_EQ(cache_name("/"), "inventory.json");
  EXPECT_NE(cache_name("/a/b"), cache_name("/a-b"));
  EXPECT_NE(cache_name("/a_b"), cache_name("/a/b"));
  EXPECT_LT(cache_name("/" + std::string(4000, 'x')).size(), 250U);
}

}  // namespace
}  // namespace berth::gpu
