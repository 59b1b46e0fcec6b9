// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "unit/gpu/driver_tree.hpp"
#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using ::testing::Contains;
using testing::DriverTree;
using ::testing::ElementsAre;
using testing::find_file;
using testing::inventory_of;
using ::testing::IsEmpty;
using testing::options_for;
using testing::Scratch;
using ::testing::StartsWith;
using testing::Warnings;
using testing::with_nvml;

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

TEST(Probe, tells_the_glibc_that_the_libraries_ask_for) {
  EXPECT_EQ(inventory_of(DriverTree("one")).driver.glibc_needed, "");
  EXPECT_EQ(inventory_of(DriverTree("one", "--glibc 2.27")).driver.glibc_needed, "2.27");
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

TEST(Probe, asks_an_old_nvml_by_its_older_functions) {
  Inventory inventory = inventory_of(DriverTree("eight", with_nvml("old_nvml_stub")), true);
  EXPECT_EQ(inventory.nvml, "ok");
  EXPECT_EQ(inventory.driver.cuda_source, "nvml");
  ASSERT_EQ(inventory.gpus.size(), 8U);
  EXPECT_EQ(inventory.gpus[7].memory_bytes, 85520809984U);  // joined by the PCI address
}

TEST(Probe, an_old_nvml_tells_processes) {
  DriverTree tree("one", with_nvml("old_nvml_stub"));
  std::string facts = testing::read_text(tree.root() + "/nvml.facts");
  size_t at = facts.find("name=");
  ASSERT_NE(at, std::string::npos);
  facts.insert(at, "process=4711:1048576,4712:2097152 ");
  testing::write_text(tree.root() + "/nvml.facts", facts);
  auto uses = ask_nvml_use(testing::build_directory() + "/bin/berth-gpu-probe",
                           tree.libraries() + "/libnvidia-ml.so.570.133.20",
                           std::chrono::milliseconds(10000));
  ASSERT_TRUE(uses.ok()) << to_line(uses.error());
  ASSERT_EQ(uses->gpus.size(), 1U);
  EXPECT_EQ(uses->gpus[0].pci_address, "0000:1b:00.0");
  ASSERT_TRUE(uses->gpus[0].processes);
  ASSERT_EQ(uses->gpus[0].processes->size(), 2U);
  EXPECT_EQ((*uses->gpus[0].processes)[1].pid, 4712);
  EXPECT_EQ((*uses->gpus[0].processes)[1].used_bytes, 2097152U);
  EXPECT_FALSE((*uses->gpus[0].processes)[1].gpu_instance);
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
  for (const char* directory : {"usr/lib64", "usr/lib", "run/opengl-driver/lib",
                                "home/kubernetes/bin/nvidia/lib64", "usr/local/glibc/usr/lib"}) {
    Inventory inventory =
        inventory_of(DriverTree("one", std::string("--cache none --libdir ") + directory));
    EXPECT_NE(find_file(inventory, "libcuda.so.570.133.20"), nullptr) << directory;
  }
}

TEST(Probe, finds_everything_in_every_layout) {
  for (const char* layout : {"multiarch", "lib64", "current", "prefix", "local", "nixos"}) {
    Inventory inventory = inventory_of(DriverTree("one", std::string("--layout ") + layout));
    EXPECT_EQ(inventory.driver.library_version, "570.133.20") << layout;
    for (const char* name :
         {"libcuda.so.570.133.20", "libnvidia-ml.so.570.133.20", "libnvidia-egl-gbm.so.1.1.2",
          "libnvidia-api.so.1", "libvdpau_nvidia.so.570.133.20", "nvidia-smi", "nvidia-imex",
          "nvidia-imex-ctl", "nvidia-xconfig", "nvidia.icd", "10-nvidia.conf", "10_nvidia.json",
          "nvidia_drv.so", "libglxserver_nvidia.so.570.133.20", "gsp_ga10x.bin"}) {
      EXPECT_NE(find_file(inventory, name), nullptr) << layout << ": " << name;
    }
    EXPECT_EQ(find_file(inventory, "libEGL.so.570.133.20"), nullptr) << layout;
    EXPECT_EQ(find_file(inventory, "libGLESv2.so.570.133.20"), nullptr) << layout;
    EXPECT_THAT(inventory.problems, IsEmpty()) << layout;
  }
}

TEST(Probe, programs_find_what_is_no_library_where_they_look_for_it) {
  DriverTree tree("one", "--layout prefix");
  Inventory inventory = inventory_of(tree);
  auto place = [&](const char* name) { return find_file(inventory, name)->container_path; };
  EXPECT_EQ(place("nvidia-smi"), "/usr/bin/nvidia-smi");
  EXPECT_EQ(find_file(inventory, "nvidia-smi")->host_path,
            tree.root() + "/opt/driver/bin/nvidia-smi");
  EXPECT_EQ(place("nvidia.icd"), "/etc/OpenCL/vendors/nvidia.icd");
  EXPECT_EQ(place("10-nvidia.conf"), "/usr/share/X11/xorg.conf.d/10-nvidia.conf");
  EXPECT_EQ(place("gsp_ga10x.bin"), "/usr/lib/firmware/nvidia/570.133.20/gsp_ga10x.bin");
  // The X server's configuration names the directory of the host.
  EXPECT_EQ(place("nvidia_drv.so"), "/opt/driver/lib64/nvidia/xorg/nvidia_drv.so");
  EXPECT_EQ(place("libglxserver_nvidia.so.570.133.20"),
            "/opt/driver/lib64/nvidia/xorg/libglxserver_nvidia.so");
  EXPECT_EQ(find_file(inventory, "nvidia_drv.so")->kind, FileKind::module);
  EXPECT_EQ(find_file(inventory, "gsp_ga10x.bin")->kind, FileKind::firmware);
}

TEST(Probe, finds_the_profiles_of_this_version_and_those_of_all) {
  DriverTree tree("one");
  const std::string share = tree.root() + "/usr/share/nvidia/";
  for (const char* name : {"570.133.20-rc", "550.54.15-rc", "rc", "570.133.20-key-documentation"}) {
    testing::write_text(share + "nvidia-application-profiles-" + name, "{}");
  }
  Inventory inventory = inventory_of(tree);
  const std::string ours = "nvidia-application-profiles-570.133.20-rc";
  ASSERT_NE(find_file(inventory, ours), nullptr);
  EXPECT_EQ(find_file(inventory, ours)->container_path, "/usr/share/nvidia/" + ours);
  EXPECT_THAT(find_file(inventory, ours)->capabilities, Contains("compute"));
  EXPECT_NE(find_file(inventory, "nvidia-application-profiles-rc"), nullptr);
  EXPECT_EQ(find_file(inventory, "nvidia-application-profiles-550.54.15-rc"), nullptr);
}

TEST(Probe, of_two_programs_takes_the_one_that_names_the_version_of_the_libraries) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/usr/bin/nvidia-smi", "NVIDIA-SMI 550.54.15\n");
  testing::write_text(tree.root() + "/opt/bin/nvidia-smi", "NVIDIA-SMI 570.133.20\n");
  Inventory inventory = inventory_of(tree);
  EXPECT_EQ(find_file(inventory, "nvidia-smi")->host_path, tree.root() + "/opt/bin/nvidia-smi");
  EXPECT_THAT(inventory.problems, IsEmpty());
}

TEST(Probe, a_program_of_another_driver_is_given_and_told) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/usr/bin/nvidia-smi", "NVIDIA-SMI 550.54.15\n");
  // It is also distributed on its own, with versions of its own.
  testing::write_text(tree.root() + "/usr/bin/nvidia-xconfig", "version 550.54.15\n");
  Inventory inventory = inventory_of(tree);
  EXPECT_NE(find_file(inventory, "nvidia-smi"), nullptr);
  EXPECT_THAT(inventory.problems, ElementsAre("'" + tree.root() +
                                              "/usr/bin/nvidia-smi' is of driver 550.54.15, the "
                                              "libraries are of 570.133.20"));
}

TEST(Probe, finds_modules_of_the_x_server_beside_the_programs) {
  namespace fs = std::filesystem;
  DriverTree tree("one");
  const std::string package = tree.root() + "/nix/store/0a1b-nvidia-x11-bin";
  fs::create_directories(package + "/bin");
  fs::create_directories(package + "/lib/xorg/modules/drivers");
  fs::rename(tree.libraries() + "/nvidia/xorg/nvidia_drv.so",
             package + "/lib/xorg/modules/drivers/nvidia_drv.so");
  fs::rename(tree.root() + "/usr/bin/nvidia-smi", package + "/bin/nvidia-smi");
  fs::create_symlink("/nix/store/0a1b-nvidia-x11-bin/bin/nvidia-smi",
                     tree.root() + "/usr/bin/nvidia-smi");
  Inventory inventory = inventory_of(tree);
  ASSERT_NE(find_file(inventory, "nvidia_drv.so"), nullptr);
  EXPECT_EQ(find_file(inventory, "nvidia_drv.so")->container_path,
            "/nix/store/0a1b-nvidia-x11-bin/lib/xorg/modules/drivers/nvidia_drv.so");
}

TEST(Probe, takes_libGL_only_when_it_needs_the_drivers_core) {
  Inventory inventory = inventory_of(DriverTree("one", "--no-glvnd"));
  for (const char* name : {"libGL.so.570.133.20", "libEGL.so.570.133.20", "libGLESv2.so.570.133.20",
                           "libGLESv1_CM.so.570.133.20"}) {
    EXPECT_NE(find_file(inventory, name), nullptr) << name;
  }
  EXPECT_EQ(find_file(inventory, "libGL.so.1.7.0"), nullptr);
}

TEST(Probe, names_both_versions_of_a_module_that_has_two) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/proc/driver/nvidia/version",
                      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Tue\n");
  EXPECT_THAT(
      inventory_of(tree).problems,
      Contains("the kernel module is 570.133.20 by /sys/module/nvidia/version and 550.90.07 "
               "by /proc/driver/nvidia/version, taking 570.133.20"));
}

TEST(Probe, of_two_tls_libraries_takes_the_one_with_the_note) {
  DriverTree tree("one");
  const std::string name = "libnvidia-tls.so.570.133.20";
  std::string upper = tree.libraries() + "/" + name, lower = tree.libraries() + "/tls/" + name;
  EXPECT_EQ(find_file(inventory_of(tree), name)->host_path, upper);
  std::filesystem::rename(upper, upper + ".moved");
  std::filesystem::rename(lower, upper);
  std::filesystem::rename(upper + ".moved", lower);
  EXPECT_EQ(find_file(inventory_of(tree), name)->host_path, lower);
  std::filesystem::remove(lower);  // the only one is taken as it is
  EXPECT_EQ(find_file(inventory_of(tree), name)->host_path, upper);
}

TEST(Probe, firmware_is_looked_for_where_the_kernel_does) {
  DriverTree tree("one");
  auto path = [&] { return find_file(inventory_of(tree), "gsp_ga10x.bin")->host_path; };
  auto add = [&](const std::string& directory) {
    std::string file = tree.root() + directory + "/nvidia/570.133.20/gsp_ga10x.bin";
    testing::write_text(file, "firmware");
    return file;
  };
  std::string release = "/6.1.0-synthetic";
  for (const std::string& directory :
       {"/lib/firmware" + release, std::string("/lib/firmware/updates"),
        "/lib/firmware/updates" + release}) {
    std::string added = add(directory);
    EXPECT_EQ(path(), added);
  }
  testing::write_text(tree.root() + "/sys/module/firmware_class/parameters/path",
                      "/var/firmware\n");
  std::string added = add("/var/firmware");
  EXPECT_EQ(path(), added);
}

TEST(Probe, a_configured_directory_is_searched_first) {
  DriverTree tree("one");
  std::string other = tree.root() + "/srv/driver/";
  std::filesystem::create_directories(other);
  std::filesystem::copy(tree.libraries() + "/libcuda.so.570.133.20", other);
  ProbeOptions options = options_for(tree, false);
  options.configured.library_directories = {"/srv/driver"};
  NullLog log;
  auto inventory = probe(options, log);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(find_file(*inventory, "libcuda.so.570.133.20")->host_path,
            other + "libcuda.so.570.133.20");
}

TEST(Probe, configured_files_are_given_and_missed) {
  DriverTree tree("one");
  testing::write_text(tree.root() + "/etc/site.conf", "x");
  ProbeOptions options = options_for(tree, false);
  options.configured.files = {"/etc/site.conf", "/etc/none.conf"};
  NullLog log;
  auto inventory = probe(options, log);
  ASSERT_TRUE(inventory.ok());
  const DriverFile* file = find_file(*inventory, "site.conf");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->container_path, "/etc/site.conf");
  EXPECT_THAT(file->capabilities, Contains("utility"));
  EXPECT_THAT(
      inventory->problems,
      Contains("'/etc/none.conf' is to be given with every GPU and is not there, ignoring it"));
}

TEST(Probe, the_directory_of_mps_counts_when_it_is_ours) {
  DriverTree tree("one");
  std::filesystem::create_directories(tree.root() + "/tmp/nvidia-mps");
  const DriverFile* found = nullptr;
  Inventory inventory = inventory_of(tree);
  found = find_file(inventory, "nvidia-mps");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->kind, FileKind::directory);
  EXPECT_EQ(found->container_path, "/tmp/nvidia-mps");
  // Anybody may put a link there.
  std::filesystem::remove(tree.root() + "/tmp/nvidia-mps");
  std::filesystem::create_directory_symlink("/etc", tree.root() + "/tmp/nvidia-mps");
  EXPECT_EQ(find_file(inventory_of(tree), "nvidia-mps"), nullptr);
}

TEST(Probe, root_is_known_before_its_id_is_hidden) {
  DriverTree tree("one");
  EXPECT_THAT(services_of_root(tree.root()), IsEmpty());
  std::filesystem::create_directories(tree.root() + "/tmp/nvidia-mps");
  struct stat info {};
  ASSERT_EQ(::stat((tree.root() + "/tmp/nvidia-mps").c_str(), &info), 0);
  size_t expected = info.st_uid == 0 ? 1 : 0;
  EXPECT_EQ(services_of_root(tree.root()).size(), expected);
  EXPECT_THAT(services_of_root(tree.root() + "/none"), IsEmpty());
}

TEST(Probe, a_board_with_two_gpus_is_two_gpus) {
  Inventory inventory = inventory_of(DriverTree("boards", with_nvml()), true);
  ASSERT_EQ(inventory.gpus.size(), 4U);
  EXPECT_EQ(inventory.gpus[0].board, inventory.gpus[1].board);
  EXPECT_NE(inventory.gpus[0].board, inventory.gpus[2].board);
  EXPECT_FALSE(inventory.gpus[2].board.empty());
  EXPECT_EQ(inventory.gpus[0].compute_capability, "3.7");
  EXPECT_FALSE(inventory.gpus[0].numa_node.has_value());
  EXPECT_THAT(inventory.gpus[0].nvlink_peers, IsEmpty());
  EXPECT_EQ(inventory_of(DriverTree("one", with_nvml()), true).gpus[0].board, "");
}

TEST(Probe, nvml_tells_the_peers_behind_a_switch_and_those_of_a_link) {
  DriverTree tree("eight", with_nvml());
  Inventory inventory = inventory_of(tree, true);
  EXPECT_THAT(inventory.gpus[2].nvlink_peers, ElementsAre(0, 1, 3, 4, 5, 6, 7));
  std::string facts = testing::read_text(tree.root() + "/nvml.facts");
  for (size_t at = facts.find("fabric=1"); at != std::string::npos; at = facts.find("fabric=1")) {
    facts.replace(at, 8, "link=00000000:43:00.0,00000000:FF:00.0");
  }
  testing::write_text(tree.root() + "/nvml.facts", facts);
  EXPECT_THAT(inventory_of(tree, true).gpus[2].nvlink_peers, ElementsAre(1));
}

TEST(Probe, nvml_tells_the_numa_node_that_sysfs_does_not) {
  DriverTree tree("eight", with_nvml() + "--numa -1");
  std::string facts = testing::read_text(tree.root() + "/nvml.facts");
  facts.replace(facts.find("fabric=1"), 8, "numa=3");
  testing::write_text(tree.root() + "/nvml.facts", facts);
  Inventory inventory = inventory_of(tree, true);
  EXPECT_EQ(inventory.gpus[0].numa_node, 3);
  EXPECT_FALSE(inventory.gpus[1].numa_node.has_value());
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
  EXPECT_THAT(inventory.problems,
              Contains("the NVIDIA kernel module is not loaded; try: modprobe nvidia"));
}

TEST(Probe, names_platforms_whose_gpus_are_not_supported) {
  const std::map<std::string, std::string> kPlatforms = {{"dxg", "WSL2"}, {"nvmap", "Tegra"}};
  for (const auto& [node, name] : kPlatforms) {
    Scratch scratch;
    testing::write_text(scratch.path() + "/SYNTHETIC", "");
    ASSERT_TRUE(sys::make_directories(sys::cwd(), scratch.path() + "/dev").ok());
    testing::write_text(scratch.path() + "/dev/" + node, "");
    ProbeOptions options;
    options.driver_root = scratch.path();
    NullLog log;
    auto inventory = probe(options, log);
    ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
    EXPECT_THAT(inventory->problems, ElementsAre(::testing::HasSubstr(name)));
  }
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

}  // namespace
}  // namespace berth::gpu
