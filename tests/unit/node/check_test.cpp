// SPDX-License-Identifier: Apache-2.0
#include "node/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace berth::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

Profile small() {
  Profile profile;
  profile.architecture = "amd64";
  return profile;
}

/// The error line of a profile that `change` has spoilt.
std::string fault(const std::function<void(Profile&)>& change) {
  Profile profile = small();
  change(profile);
  auto checked = check(profile, "n.toml");
  return checked.ok() ? "none" : to_line(checked.error());
}

TEST(Check, writes_names_as_we_do) {
  Profile profile = small();
  profile.architecture = "x86_64";
  profile.cpu.microarchitecture = "skylake-avx512";
  profile.libc = "2.36";
  profile.gpus.resize(1);
  profile.gpus[0].compute_capability = "sm_90";
  profile.fabric = {"roce", "efa", "roce"};
  ASSERT_TRUE(check(profile, "n").ok());
  EXPECT_EQ(profile.architecture, "amd64");
  EXPECT_EQ(profile.cpu.microarchitecture, "skylake_avx512");
  EXPECT_EQ(profile.libc, "glibc 2.36");
  EXPECT_EQ(profile.gpus[0].compute_capability, "9.0");
  EXPECT_THAT(profile.fabric, ElementsAre("efa", "roce"));
  EXPECT_EQ(profile.cpu.level, 0u);  // nothing is filled
}

TEST(Check, fills_what_follows) {
  Profile profile = small();
  profile.cpu.microarchitecture = "broadwell";
  profile.driver.module_version = "570.133.20";
  profile.gpus.resize(2);
  profile.gpus[0].compute_capability = "3.7";
  profile.gpus[1].architecture = "gfx90a";
  profile.mpi.resize(2);
  profile.mpi[0].family = "openmpi";
  profile.mpi[1].soname = "libmpi.so.12";
  ASSERT_TRUE(check(profile, "n").ok());
  fill(profile);
  EXPECT_EQ(profile.cpu.level, 3u);
  EXPECT_EQ(profile.cpu.vendor, "GenuineIntel");
  EXPECT_THAT(profile.cpu.ancestors, Contains("haswell"));
  EXPECT_THAT(profile.cpu.features, Contains("avx2"));
  EXPECT_EQ(profile.driver.library_version, "570.133.20");
  EXPECT_EQ(profile.driver.cuda_version, "12.8");
  EXPECT_EQ(profile.gpus[0].vendor, "nvidia");
  EXPECT_EQ(profile.gpus[1].vendor, "amd");
  EXPECT_EQ(profile.mpi[0].soname, "libmpi.so.40");
  EXPECT_EQ(profile.mpi[1].family, "mpich");
}

TEST(Check, a_level_alone_is_the_generic_microarchitecture) {
  Profile profile = small();
  profile.cpu.level = 3;
  fill(profile);
  EXPECT_EQ(profile.cpu.microarchitecture, "x86_64_v3");
}

TEST(Check, what_a_profile_says_stays) {
  Profile profile = small();
  profile.driver.module_version = "570.133.20";
  profile.driver.cuda_version = "12.9";
  profile.cpu.microarchitecture = "broadwell";
  profile.cpu.features = {"sse2"};
  fill(profile);
  EXPECT_EQ(profile.driver.cuda_version, "12.9");
  EXPECT_THAT(profile.cpu.features, ElementsAre("sse2"));
}

TEST(Check, nothing_is_made_up_of_a_cpu_that_nobody_describes) {
  Profile profile = small();
  fill(profile);
  EXPECT_EQ(profile.cpu.microarchitecture, "");
  EXPECT_EQ(profile.cpu.level, 0u);
}

TEST(Check, every_fault_names_its_member) {
  EXPECT_EQ(fault([](Profile& p) { p.version = 2; }),
            "n.toml: version: this Berth reads profiles of version 1, this one is of 2");
  EXPECT_EQ(fault([](Profile& p) { p.architecture = "amd46"; }),
            "n.toml: architecture: unknown architecture 'amd46'; did you "
            "mean 'amd64'?");
  EXPECT_EQ(fault([](Profile& p) { p.cpu.microarchitecture = "brodwell"; }),
            "n.toml: cpu.microarchitecture: unknown microarchitecture 'brodwell'; "
            "did you mean 'broadwell'?");
  EXPECT_EQ(fault([](Profile& p) { p.cpu.microarchitecture = "power9le"; }),
            "n.toml: cpu.microarchitecture: 'power9le' is of ppc64le, and the architecture of this "
            "node is amd64");
  EXPECT_EQ(fault([](Profile& p) { p.cpu.level = 5; }),
            "n.toml: cpu.level: there are 1 to 4, got 5");
  EXPECT_EQ(fault([](Profile& p) {
              p.gpus.resize(2);
              p.gpus[0].vendor = "nvidia";
              p.gpus[1].compute_capability = "nine";
            }),
            "n.toml: gpus[1].compute_capability: expected a compute capability as '9.0', got "
            "'nine'");
  EXPECT_EQ(fault([](Profile& p) { p.gpus.resize(1); }),
            "n.toml: gpus[0].vendor: missing, and no other member implies it");
  EXPECT_EQ(fault([](Profile& p) {
              p.gpus.resize(1);
              p.gpus[0].vendor = "nvidai";
            }),
            "n.toml: gpus[0].vendor: unknown GPU vendor 'nvidai'; did you mean 'nvidia'?");
  EXPECT_EQ(fault([](Profile& p) { p.driver.module_version = "new"; }),
            "n.toml: driver.module_version: expected a version as '570.133.20', got 'new'");
  EXPECT_EQ(fault([](Profile& p) { p.libc = "uclibc"; }),
            "n.toml: libc: expected 'glibc 2.36' or 'musl', got 'uclibc'");
  EXPECT_EQ(fault([](Profile& p) { p.mpi.resize(1); }),
            "n.toml: mpi[0].family: missing, and the SONAME '' does not imply it");
  EXPECT_EQ(fault([](Profile& p) { p.kernel.release = "new"; }),
            "n.toml: kernel.release: expected a release as '6.1.0-18-amd64', got 'new'");
}

TEST(Check, a_slip_of_a_word_is_told_and_a_word_that_is_new_passes) {
  EXPECT_EQ(fault([](Profile& p) { p.fabric = {"infinband"}; }),
            "n.toml: fabric: unknown fabric 'infinband'; did you mean 'infiniband'?");
  EXPECT_EQ(fault([](Profile& p) {
              p.kernel.abilities = {"overlay", "landlok"};
            }),
            "n.toml: kernel.abilities: unknown kernel ability 'landlok'; did you mean "
            "'landlock'?");
  EXPECT_EQ(fault([](Profile& p) {
              p.gpus.resize(1);
              p.gpus[0].vendor = "nvidia";
              p.gpus[0].brand = "tesal";
            }),
            "n.toml: gpus[0].brand: unknown GPU brand 'tesal'; did you mean 'tesla'?");
  EXPECT_EQ(fault([](Profile& p) {
              p.mpi.resize(1);
              p.mpi[0].family = "opnmpi";
            }),
            "n.toml: mpi[0].family: unknown MPI family 'opnmpi'; did you mean 'openmpi'?");
  EXPECT_EQ(fault([](Profile& p) { p.fabric = {"ultraethernet"}; }), "none");
}

TEST(Check, what_contradicts_itself_is_refused) {
  EXPECT_EQ(fault([](Profile& p) {
              p.cpu.microarchitecture = "broadwell";
              p.cpu.level = 4;
            }),
            "n.toml: cpu.level: it is 4, and 'broadwell' has level 3");
  EXPECT_EQ(fault([](Profile& p) {
              p.gpus.resize(1);
              p.gpus[0].vendor = "amd";
              p.gpus[0].compute_capability = "9.0";
            }),
            "n.toml: gpus[0].compute_capability: a GPU of amd has none; its architecture is as "
            "'gfx90a'");
}

TEST(Check, a_microarchitecture_of_a_later_database_is_good_with_its_ancestors) {
  EXPECT_EQ(fault([](Profile& p) {
              p.cpu.microarchitecture = "zen9";
              p.cpu.ancestors = {"zen5"};
            }),
            "none");
}

TEST(Check, reads_the_ways_to_write_a_compute_capability) {
  EXPECT_EQ(compute_capability("9.0"), "9.0");
  EXPECT_EQ(compute_capability("90"), "9.0");
  EXPECT_EQ(compute_capability("sm_120"), "12.0");
  EXPECT_EQ(compute_capability("9"), "9.0");
  EXPECT_EQ(compute_capability("sm_90a"), std::nullopt);
  EXPECT_EQ(compute_capability(""), std::nullopt);
  EXPECT_EQ(compute_capability("9.0.1"), std::nullopt);
  EXPECT_EQ(compute_capability("9000"), std::nullopt);
  EXPECT_EQ(compute_capability("9.01"), std::nullopt);
  EXPECT_EQ(compute_capability("0.9"), std::nullopt);
}

TEST(Check, reads_the_ways_to_write_a_libc) {
  EXPECT_EQ(libc_name("glibc-2.28"), "glibc 2.28");
  EXPECT_EQ(libc_name("musl"), "musl");
  EXPECT_EQ(libc_name("musl 1.2.4"), "musl 1.2.4");
  EXPECT_EQ(libc_name("glibc"), std::nullopt);
  EXPECT_EQ(libc_name("glibcx2.3"), std::nullopt);
}

TEST(Check, tells_releases_of_linux) {
  for (const char* text : {"6", "6.1", "6.1.0-18-amd64", "5.15.0+", "6.18.5-rc1"}) {
    EXPECT_TRUE(is_kernel_release(text)) << text;
  }
  for (const char* text : {"", "abc", "v6.1", "6.", "6.x", "-6.1"}) {
    EXPECT_FALSE(is_kernel_release(text)) << text;
  }
}

TEST(Check, tells_versions) {
  EXPECT_TRUE(is_version("570.133.20"));
  EXPECT_TRUE(is_version("6"));
  for (const char* text : {"", ".", "1.", "1..2", "v1", "1.2-3"}) EXPECT_FALSE(is_version(text));
  EXPECT_FALSE(is_version(std::string(100, '1')));
}

}  // namespace
}  // namespace berth::node
