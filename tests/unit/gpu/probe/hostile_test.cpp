// SPDX-License-Identifier: Apache-2.0
// A driver root whose files are not what their names say, and probes that misbehave.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

namespace fs = std::filesystem;
using testing::DriverTree;
using ::testing::ElementsAre;
using testing::find_file;
using testing::has_problem;
using testing::inventory_of;
using ::testing::IsEmpty;
using testing::options_for;
using testing::Scratch;
using testing::with_nvml;

constexpr const char* kCuda = "libcuda.so.570.133.20";

TEST(HostileRoot, a_fifo_in_the_place_of_a_library_does_not_block) {
  DriverTree tree("one");
  std::string path = tree.libraries() + "/libnvidia-opencl.so.570.133.20";
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
  Inventory inventory = inventory_of(tree);
  EXPECT_EQ(find_file(inventory, "libnvidia-opencl.so.570.133.20"), nullptr);
  EXPECT_NE(find_file(inventory, kCuda), nullptr);
}

TEST(HostileRoot, a_device_in_the_place_of_a_library_is_absent) {
  DriverTree tree("one");
  std::string path = tree.libraries() + "/libnvidia-opencl.so.570.133.20";
  fs::remove(path);
  if (::mknod(path.c_str(), S_IFCHR | 0644, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(find_file(inventory_of(tree), "libnvidia-opencl.so.570.133.20"), nullptr);
}

TEST(HostileRoot, links_that_go_round_are_absent) {
  DriverTree tree("one");
  std::string directory = tree.root() + "/usr/lib64";
  fs::create_directories(directory);
  fs::create_symlink("libcuda.so.570.133.21", directory + "/libcuda.so.570.133.20");
  fs::create_symlink("libcuda.so.570.133.20", directory + "/libcuda.so.570.133.21");
  fs::create_directory_symlink(".", directory + "/vdpau");
  fs::create_directory_symlink("../lib64", directory + "/tls");
  Inventory inventory = inventory_of(tree);
  EXPECT_EQ(find_file(inventory, kCuda)->host_path, tree.libraries() + "/" + kCuda);
}

TEST(HostileRoot, a_link_out_of_the_root_leads_nowhere) {
  DriverTree tree("one"), other("one");
  fs::remove_all(tree.libraries());
  fs::create_directory_symlink(other.libraries(), tree.libraries());
  fs::create_directories(tree.root() + "/usr/lib64");
  fs::create_symlink(
      std::string("../../../../../../../../../../..") + other.libraries() + "/" + kCuda,
      tree.root() + "/usr/lib64/" + kCuda);
  fs::create_symlink("../../../../../../../../../.." + other.libraries() + "/" + kCuda,
                     tree.root() + "/usr/lib64/libcuda.so.570.133.19");
  EXPECT_EQ(find_file(inventory_of(tree), kCuda), nullptr);
}

TEST(HostileRoot, a_huge_directory_is_left_out_with_a_word) {
  DriverTree tree("one");
  std::string directory = tree.root() + "/usr/lib64";
  fs::create_directories(directory);
  int dir = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i <= 200'000; ++i) {
    ASSERT_EQ(::mknodat(dir, ("libcuda.so." + std::to_string(i)).c_str(), S_IFREG | 0644, 0), 0);
  }
  ::close(dir);
  Inventory inventory = inventory_of(tree);
  EXPECT_TRUE(has_problem(inventory, "more than 200000 entries, ignoring it"));
  EXPECT_NE(find_file(inventory, kCuda), nullptr);
}

TEST(HostileRoot, a_damaged_library_is_said_and_left_out) {
  DriverTree tree("one");
  testing::write_text(tree.libraries() + "/libnvidia-ifr.so.570.133.20", "\177ELF truncated");
  Inventory inventory = inventory_of(tree);
  EXPECT_EQ(find_file(inventory, "libnvidia-ifr.so.570.133.20"), nullptr);
  ASSERT_EQ(inventory.unusable.size(), 1U);
  EXPECT_TRUE(inventory.unusable[0].path.ends_with("/libnvidia-ifr.so.570.133.20"));
}

std::vector<std::string> unusable(const DriverTree& tree) {
  std::vector<std::string> out;
  for (const UnusableFile& file : inventory_of(tree).unusable) {
    out.push_back(file.path.substr(tree.root().size()) + ": " + file.why);
  }
  return out;
}

constexpr const char* kOpencl = "/libnvidia-opencl.so.570.133.20";

TEST(HostileRoot, half_an_upgrade_is_said) {
  DriverTree tree("one");
  fs::rename(tree.libraries() + kOpencl, tree.libraries() + "/libnvidia-opencl.so.555.42.02");
  EXPECT_THAT(unusable(tree),
              ElementsAre("/usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.555.42.02: of driver "
                          "555.42.02, and its other files are of 570.133.20"));
}

TEST(HostileRoot, what_an_older_driver_has_left_beside_this_one_is_not) {
  DriverTree tree("one");
  fs::copy(tree.libraries() + kOpencl, tree.libraries() + "/libnvidia-opencl.so.555.42.02");
  fs::create_directories(tree.root() + "/usr/lib/x86_64-linux-gnu/nvidia/legacy");
  fs::copy(tree.libraries() + kOpencl,
           tree.root() + "/usr/lib/x86_64-linux-gnu/nvidia/legacy/libnvidia-rtcore.so.390.157");
  EXPECT_THAT(unusable(tree), IsEmpty());
}

TEST(HostileRoot, another_driver_in_the_same_directory_is_not) {
  DriverTree tree("one");
  for (const char* name : {"/libcuda.so.", "/libnvidia-ml.so.", "/libnvidia-opencl.so."}) {
    const char* to =
        std::string_view(name) == "/libnvidia-opencl.so." ? "/libnvidia-ifr.so." : name;
    fs::copy(tree.libraries() + name + "570.133.20", tree.libraries() + to + "555.42.02");
  }
  EXPECT_THAT(unusable(tree), IsEmpty());
  fs::remove(tree.libraries() + "/libnvidia-ml.so.555.42.02");
  EXPECT_THAT(unusable(tree), ElementsAre(::testing::HasSubstr("libnvidia-ifr.so.555.42.02: of")));
}

TEST(HostileRoot, a_library_of_another_architecture_is_said) {
  DriverTree tree("one");
  std::fstream file(tree.libraries() + kOpencl, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(18);
  file.put('\xf3').put('\0');  // RISC-V
  file.close();
  EXPECT_THAT(unusable(tree),
              ElementsAre(::testing::StartsWith(std::string("/usr/lib/x86_64-linux-gnu") + kOpencl +
                                                ": for ELF machine 243, and this machine is ")));
}

TEST(HostileRoot, a_link_that_leads_nowhere_is_said) {
  DriverTree tree("one");
  fs::remove(tree.libraries() + kOpencl);
  fs::create_symlink("/gone/opencl", tree.libraries() + kOpencl);
  fs::remove(tree.root() + "/usr/bin/nvidia-smi");
  fs::create_symlink("/etc/alternatives/nvidia-smi", tree.root() + "/usr/bin/nvidia-smi");
  EXPECT_THAT(
      unusable(tree),
      ::testing::UnorderedElementsAre(
          std::string("/usr/lib/x86_64-linux-gnu") + kOpencl +
              ": a link to '/gone/opencl' that leads nowhere",
          "/usr/bin/nvidia-smi: a link to '/etc/alternatives/nvidia-smi' that leads nowhere"));
}

TEST(HostileRoot, ld_so_conf_that_includes_itself_ends) {
  DriverTree tree("one", "--cache none");
  testing::write_text(
      tree.root() + "/etc/ld.so.conf",
      "include /etc/ld.so.conf\ninclude /etc/*.conf\ninclude ld.so.conf.d/*.conf\n");
  EXPECT_NE(find_file(inventory_of(tree), kCuda), nullptr);
}

TEST(HostileProcfs, texts_without_sense_cost_the_gpu_alone) {
  DriverTree tree("eight");
  std::string gpus = tree.root() + "/proc/driver/nvidia/gpus/";
  testing::write_text(gpus + "0000:1b:00.0/information", "Device Minor: 99999999999999999999\n");
  testing::write_text(gpus + "0000:43:00.0/information", std::string(4096, ':'));
  testing::write_text(gpus + "0000:52:00.0/information", "");
  testing::write_text(tree.root() + "/proc/driver/nvidia-caps/mig-minors", std::string(4096, '/'));
  testing::write_text(tree.root() + "/sys/bus/pci/devices/0000:61:00.0/numa_node", "nonsense\n");
  Inventory inventory = inventory_of(tree);
  ASSERT_EQ(inventory.gpus.size(), 5U);
  EXPECT_FALSE(inventory.gpus[0].numa_node.has_value());
  EXPECT_TRUE(has_problem(inventory, "does not tell the node of the GPU at 0000:43:00.0"));
}

// ---- probes that misbehave ----------------------------------------------------------------------

Inventory asked_through(const std::string& program, const DriverTree& tree) {
  ProbeOptions options = options_for(tree, false);
  options.probe_program = program;
  options.nvml_deadline = std::chrono::seconds(20);
  NullLog log;
  auto inventory = probe(options, log);
  EXPECT_TRUE(inventory.ok()) << to_line(inventory.error());
  return inventory.ok() ? *inventory : Inventory{};
}

std::string script(const Scratch& scratch, const std::string& body) {
  std::string path = scratch.path() + "/probe";
  testing::write_text(path, "#!/bin/sh\n" + body + "\n");
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

TEST(HostileProbe, a_library_that_crashes_costs_detail_only) {
  DriverTree tree("one", with_nvml() + "--nvml-mode crash");
  Inventory inventory = inventory_of(tree, true);
  // A sanitizer reports the signal itself and ends with a status.
  EXPECT_THAT(inventory.nvml,
              ::testing::AnyOf("killed by signal 11", ::testing::HasSubstr("ABORTING"),
                               ::testing::HasSubstr("ended with status")));
  EXPECT_EQ(inventory.gpus.size(), 1U);
}

TEST(HostileProbe, a_library_that_prints_two_gigabytes_is_stopped) {
  DriverTree tree("one", with_nvml() + "--nvml-mode noise");
  auto before = std::chrono::steady_clock::now();
  Inventory inventory = inventory_of(tree, true);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(8));
  EXPECT_THAT(inventory.nvml, ::testing::HasSubstr("prints more than 1048576 bytes"));
  EXPECT_EQ(inventory.gpus.size(), 1U);
}

TEST(HostileProbe, texts_that_do_not_end_become_none) {
  DriverTree tree("mig", with_nvml() + "--nvml-mode garbage");
  Inventory inventory = inventory_of(tree, true);
  EXPECT_EQ(inventory.nvml, "ok");
  EXPECT_EQ(inventory.gpus[0].model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(inventory.gpus[0].mig[0].uuid, "");
}

TEST(HostileProbe, an_answer_that_is_no_json_costs_detail_only) {
  Scratch scratch;
  DriverTree tree("one", with_nvml());
  for (const char* body : {"echo '{\"gpus\": [{'", "echo '[]'", "head -c 100000 /dev/urandom",
                           "exit 0", "yes '{\"gpus\":' | head -c 100000 | tr -d '\\n'",
                           "kill -SEGV $$", "echo one >&2; echo two >&2; exit 1"}) {
    Inventory inventory = asked_through(script(scratch, body), tree);
    EXPECT_NE(inventory.nvml, "ok") << body;
    EXPECT_EQ(inventory.nvml.find('\n'), std::string::npos) << body;
    EXPECT_LT(inventory.nvml.size(), 1000U) << body;
    EXPECT_EQ(inventory.gpus.size(), 1U) << body;
  }
}

TEST(HostileProbe, an_endless_answer_is_stopped) {
  Scratch scratch;
  DriverTree tree("one", with_nvml());
  Inventory inventory = asked_through(script(scratch, "exec yes"), tree);
  EXPECT_THAT(inventory.nvml, ::testing::HasSubstr("prints more than 1048576 bytes"));
}

}  // namespace
}  // namespace berth::gpu
