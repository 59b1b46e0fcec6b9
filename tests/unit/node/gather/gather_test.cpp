// SPDX-License-Identifier: Apache-2.0
#include "node/gather/gather.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "node/gather/parts.hpp"
#include "scan/loader.hpp"
#include "unit/node/cpus.hpp"

namespace berth::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

/// A made-up machine.
class Gather : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            (std::string("berth-gather-") + std::to_string(::getpid()) + "-" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    put("SYNTHETIC", "made for this test\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, std::string_view text) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void link(const std::string& path, const std::string& target) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
  }
  void put_device(const std::string& name, const std::string& driver, const std::string& layer,
                  const std::string& type = "1: CA") {
    std::string base = "sys/class/infiniband/" + name;
    put(base + "/node_type", type + "\n");
    put(base + "/ports/1/link_layer", layer + "\n");
    link(base + "/device/driver", "../../../../bus/pci/drivers/" + driver);
  }
  gpu::DriverRoot root() const { return *gpu::DriverRoot::open(root_); }

 private:
  std::filesystem::path root_;
};

TEST_F(Gather, the_kernel_by_its_files) {
  put("proc/sys/kernel/osrelease", "6.8.0-40-generic\n");
  put("proc/filesystems", "nodev\tsysfs\nnodev\toverlay\n\text4\nnodev\tfuse\n");
  put("proc/sys/user/max_user_namespaces", "15000\n");
  put("proc/sys/kernel/seccomp/actions_avail", "kill_process user_notif errno allow\n");
  put("sys/fs/cgroup/cgroup.controllers", "cpu\n");
  put("dev/fuse", "");
  put("lib/modules/6.8.0-40-generic/kernel/fs/erofs/erofs.ko.zst", "");
  Kernel kernel = gather_kernel(root(), false);
  EXPECT_EQ(kernel.release, "6.8.0-40-generic");
  EXPECT_THAT(kernel.abilities, ElementsAre("cgroup2", "erofs", "fuse", "overlay", "seccomp",
                                            "seccomp-notify", "user-overlay", "userns"));
}

TEST_F(Gather, user_namespaces_have_three_switches) {
  put("proc/sys/kernel/osrelease", "6.8.0\n");
  put("proc/filesystems", "nodev\toverlay\n");
  auto abilities = [&] { return gather_kernel(root(), false).abilities; };
  EXPECT_THAT(abilities(), Not(Contains("userns")));
  put("proc/sys/user/max_user_namespaces", "100\n");
  EXPECT_THAT(abilities(), Contains("userns"));
  put("proc/sys/kernel/unprivileged_userns_clone", "0\n");
  EXPECT_THAT(abilities(), ElementsAre("overlay"));
  put("proc/sys/kernel/unprivileged_userns_clone", "1\n");
  put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  EXPECT_THAT(abilities(), Not(Contains("userns")));
  put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
  put("proc/sys/user/max_user_namespaces", "0\n");
  EXPECT_THAT(abilities(), Not(Contains("userns")));
}

TEST_F(Gather, an_old_kernel_mounts_no_overlay_for_users) {
  put("proc/filesystems", "nodev\toverlay\n");
  put("proc/sys/user/max_user_namespaces", "100\n");
  auto abilities_of = [&](const std::string& release) {
    put("proc/sys/kernel/osrelease", release);
    return gather_kernel(root(), false).abilities;
  };
  EXPECT_THAT(abilities_of("5.10.0-8-amd64"), Not(Contains("user-overlay")));
  EXPECT_THAT(abilities_of("5.11-rc1"), Contains("user-overlay"));
  EXPECT_THAT(abilities_of("6.1.0"), Contains("user-overlay"));
  EXPECT_THAT(abilities_of("x"), Not(Contains("user-overlay")));
}

TEST_F(Gather, fabric_goes_by_driver_and_link) {
  EXPECT_THAT(gather_fabric(root()), IsEmpty());
  put_device("mlx5_0", "mlx5_core", "InfiniBand");
  put_device("mlx5_1", "mlx5_core", "InfiniBand");
  put_device("mlx5_bond_0", "mlx5_core", "Ethernet");
  put_device("rdmap0s6", "efa", "Unspecified");
  put_device("hfi1_0", "hfi1", "InfiniBand");
  put_device("iwp0", "irdma", "Ethernet", "4: RNIC");
  put_device("odd0", "odd", "Unspecified");
  link("sys/class/cxi/cxi0", "../../devices/pci/cxi/cxi0");
  EXPECT_THAT(gather_fabric(root()),
              ElementsAre("efa", "infiniband", "iwarp", "opa", "roce", "slingshot"));
}

TEST_F(Gather, mpi_is_what_the_loader_knows_of_this_machine) {
#if defined(__x86_64__)
  constexpr int32_t kOurs = 0x0303, kOther = 0x0003;
#else
  constexpr int32_t kOurs = 0x0A03, kOther = 0x0903;
#endif
  scan::LoaderCache cache;
  for (const auto& [soname, path, flags] :
       {std::tuple("libmpi.so.40", "/usr/lib/openmpi/libmpi.so.40", kOurs),
        std::tuple("libmpi.so.40", "/old/libmpi.so.40", kOurs),
        std::tuple("libmpi.so.12", "/usr/lib/libmpi.so.12", kOurs),
        std::tuple("libmpich.so.12", "/usr/lib32/libmpich.so.12", kOther),
        std::tuple("libmpi_cxx.so.40", "/usr/lib/libmpi_cxx.so.40", kOurs)}) {
    cache.entries.push_back({soname, path, flags, 0, 0});
  }
  put("etc/ld.so.cache", scan::write_loader_cache(cache));
  std::vector<Mpi> found = mpi_of(loader_entries(root()));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].soname, "libmpi.so.12");
  EXPECT_EQ(found[0].family, "mpich");
  EXPECT_EQ(found[1].family, "openmpi");
}

TEST_F(Gather, libc_says_its_version) {
  EXPECT_EQ(gather_libc(root(), loader_entries(root())), "");
  put("lib/ld-musl-x86_64.so.1", "");
  EXPECT_EQ(gather_libc(root(), loader_entries(root())), "musl");
  put("usr/lib64/libc-real.so", std::string("\0GNU C Library (GNU libc) stable release version "
                                            "2.34.\nCopyright",
                                            65));
  link("lib64/libc.so.6", "/usr/lib64/libc-real.so");  // of the tree, not of this machine
  EXPECT_EQ(gather_libc(root(), loader_entries(root())), "glibc 2.34");
}

TEST(GlibcVersion, is_in_its_banner) {
  EXPECT_EQ(glibc_version("GNU C Library (Debian GLIBC 2.36-9+deb12u7) stable release version 2.36."
                          "\nCopyright (C) 2022"),
            "2.36");
  EXPECT_EQ(glibc_version("GNU C Library stable release version 2.17, by Roland"), "2.17");
  EXPECT_EQ(glibc_version("GNU C Library \nrelease version 2.17"), "");
  EXPECT_EQ(glibc_version("GNU C Library release version "), "");
  EXPECT_EQ(glibc_version(""), "");
}

TEST_F(Gather, rocm_is_what_is_installed) {
  EXPECT_EQ(gather_rocm(root()), "");
  put("opt/rocm-6.2.0/.info/version", "6.2.0-66\n");
  link("opt/rocm", "rocm-6.2.0");
  EXPECT_EQ(gather_rocm(root()), "6.2.0");
  put("opt/rocm-6.2.0/.info/version", "evil\n");
  EXPECT_EQ(gather_rocm(root()), "");
}

TEST_F(Gather, gpus_and_driver_are_the_inventorys) {
  gpu::Inventory inventory;
  inventory.synthetic = true;
  inventory.driver = {"570.133.20", "570.133.20", "12.8", "nvml"};
  gpu::Gpu nvidia;
  nvidia.model = "H100";
  nvidia.uuid = "GPU-1";
  nvidia.compute_capability = "9.0";
  nvidia.memory_bytes = 80;
  nvidia.brand = "tesla";
  nvidia.mig_mode = true;
  nvidia.mig.resize(2);
  nvidia.mig[0].profile = "1g.10gb";
  gpu::Gpu amd;
  amd.vendor = gpu::Vendor::amd;
  amd.architecture = "gfx90a";
  inventory.gpus = {nvidia, amd};
  Profile profile = gather(root(), inventory);
  EXPECT_TRUE(profile.synthetic);
  EXPECT_EQ(profile.driver.module_version, "570.133.20");
  EXPECT_EQ(profile.driver.cuda_version, "12.8");
  ASSERT_EQ(profile.gpus.size(), 2u);
  EXPECT_EQ(profile.gpus[0].compute_capability, "9.0");
  EXPECT_EQ(profile.gpus[0].brand, "tesla");
  EXPECT_TRUE(profile.gpus[0].mig);
  EXPECT_THAT(profile.gpus[0].mig_profiles, ElementsAre("1g.10gb"));
  EXPECT_EQ(profile.gpus[1].vendor, "amd");
  EXPECT_EQ(profile.gpus[1].architecture, "gfx90a");
}

#if defined(__x86_64__)
TEST_F(Gather, a_tree_stands_for_the_machine_in_what_it_has) {
  Profile machine = gather(*gpu::DriverRoot::open("/"), {});
  EXPECT_NE(machine.cpu.microarchitecture, "");
  EXPECT_GE(machine.cpu.level, 1u);
  EXPECT_NE(machine.kernel.release, "");
  EXPECT_EQ(gather(root(), {}).cpu.features, machine.cpu.features);
  put("proc/cpuinfo", x86_cpuinfo("AuthenticAMD", "EPYC", kFlagsZen4));
  put("proc/sys/kernel/osrelease", "5.14.0-el9\n");
  Profile tree = gather(root(), {});
  EXPECT_EQ(tree.cpu.microarchitecture, "zen4");
  EXPECT_EQ(tree.kernel.release, "5.14.0-el9");
  EXPECT_THAT(tree.kernel.abilities, IsEmpty());
}
#endif

TEST_F(Gather, of_a_very_long_cpuinfo_only_the_start_is_read) {
  std::string text;
  while (text.size() < size_t{8} << 20) text += x86_cpuinfo("GenuineIntel", "", kFlagsBroadwell);
  put("proc/cpuinfo", text);
  EXPECT_EQ(start_of(root(), "/proc/cpuinfo", 4096).size(), 4096u);
  EXPECT_EQ(start_of(root(), "/proc", 4096), "");
  EXPECT_EQ(start_of(root(), "/no/such", 4096), "");
}

}  // namespace
}  // namespace berth::node
