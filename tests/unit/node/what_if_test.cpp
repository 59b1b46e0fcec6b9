// SPDX-License-Identifier: Apache-2.0
#include "node/what_if.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Profile real_node() {
  Profile profile;
  profile.architecture = "amd64";
  profile.cpu.microarchitecture = "zen4";
  profile.cpu.level = 4;
  profile.driver = {"470.57.02", "470.57.02", "11.4", "2.17"};
  profile.gpus.resize(1);
  profile.gpus[0].vendor = "nvidia";
  profile.gpus[0].compute_capability = "7.0";
  profile.gpus[0].uuid = "GPU-1";
  profile.kernel = {"5.4.0", {"overlay"}};
  return profile;
}

Profile with_words(std::string_view words) {
  auto changed = with(real_node(), words);
  EXPECT_TRUE(changed.ok()) << to_line(changed.error());
  return changed.ok() ? *changed : Profile();
}

std::string fault(std::string_view words) {
  auto changed = with(real_node(), words);
  return changed.ok() ? "none" : to_line(changed.error());
}

TEST(WhatIf, changes_what_the_words_say_and_what_follows) {
  Profile p = with_words("driver=580.65 gpu=sm_90,sm_80 cpu=broadwell kernel=6.1 libc=2.28");
  EXPECT_EQ(p.driver.module_version, "580.65");
  EXPECT_EQ(p.driver.library_version, "580.65");
  EXPECT_EQ(p.driver.cuda_version, "13.0");
  EXPECT_EQ(p.driver.glibc_needed, "");
  ASSERT_EQ(p.gpus.size(), 2u);
  EXPECT_EQ(p.gpus[0].compute_capability, "9.0");
  EXPECT_EQ(p.gpus[1].compute_capability, "8.0");
  EXPECT_EQ(p.gpus[0].uuid, "");
  EXPECT_EQ(p.cpu.microarchitecture, "broadwell");
  EXPECT_EQ(p.cpu.level, 3u);
  EXPECT_EQ(p.kernel.release, "6.1");
  EXPECT_THAT(p.kernel.abilities, ElementsAre("overlay"));
  EXPECT_EQ(p.libc, "glibc 2.28");
}

TEST(WhatIf, takes_away) {
  Profile p = with_words("driver=none gpu=none mpi=none fabric=none");
  EXPECT_EQ(p.driver.module_version, "");
  EXPECT_EQ(p.driver.cuda_version, "");
  EXPECT_THAT(p.gpus, IsEmpty());
}

TEST(WhatIf, another_cpu_may_be_of_another_architecture) {
  EXPECT_EQ(with_words("cpu=neoverse_v2").architecture, "arm64");
  EXPECT_EQ(with_words("cpu=power9le").architecture, "ppc64le");
  EXPECT_EQ(with_words("cpu=pentium4").architecture, "386");
  Profile other = with_words("arch=arm64");
  EXPECT_EQ(other.cpu.microarchitecture, "");
  EXPECT_EQ(with_words("arch=amd64").cpu.microarchitecture, "zen4");
  EXPECT_EQ(with_words("level=2").cpu.microarchitecture, "x86_64_v2");
  EXPECT_EQ(with_words("level=1").cpu.level, 1u);
}

TEST(WhatIf, the_rest_of_a_node) {
  Profile p = with_words("cuda=12.9 brand=tesla rocm=6.2 fabric=roce,efa mpi=openmpi");
  EXPECT_EQ(p.driver.cuda_version, "12.9");
  EXPECT_EQ(p.gpus[0].brand, "tesla");
  EXPECT_EQ(p.rocm, "6.2");
  EXPECT_THAT(p.fabric, ElementsAre("efa", "roce"));
  ASSERT_EQ(p.mpi.size(), 1u);
  EXPECT_EQ(p.mpi[0].soname, "libmpi.so.40");
  EXPECT_EQ(with_words("gpu=gfx90a").gpus[0].vendor, "amd");
  EXPECT_EQ(with_words("gpu=gfx90a:sramecc+:xnack-").gpus[0].architecture,
            "gfx90a:sramecc+:xnack-");
}

TEST(WhatIf, later_words_win_and_no_words_change_nothing) {
  EXPECT_EQ(with_words("driver=580.65 driver=390.30").driver.cuda_version, "9.1");
  EXPECT_EQ(with_words("  ").driver.module_version, "470.57.02");
}

TEST(WhatIf, suggests_the_nearest_of_what_it_does_not_know) {
  EXPECT_EQ(fault("drivr=1"), "nodes have no property 'drivr'; did you mean 'driver'?");
  EXPECT_EQ(fault("flux=1"),
            "nodes have no property 'flux'; expected one of: driver, cuda, gpu, brand, cpu, level, "
            "arch, kernel, libc, rocm, fabric, mpi");
  EXPECT_EQ(fault("cpu=brodwell"),
            "'cpu=brodwell': unknown microarchitecture 'brodwell'; did you mean "
            "'broadwell'?");
  EXPECT_EQ(fault("gpu=h100"),
            "'gpu=h100': expected compute capabilities as 'sm_90', AMD's as 'gfx90a', or 'none'");
  EXPECT_EQ(fault("driver"), "'driver': expected driver=VALUE");
  EXPECT_EQ(fault("driver="), "'driver=': expected driver=VALUE");
  EXPECT_EQ(fault("gpu=sm_9000"),
            "'gpu=sm_9000': expected compute capabilities as 'sm_90', AMD's as "
            "'gfx90a', or 'none'");
  EXPECT_EQ(fault("kernel=abc"), "'kernel=abc': expected a release of Linux as '6.1'");
  EXPECT_EQ(fault("fabric=foo"),
            "'fabric=foo': expected 'efa', 'infiniband', 'iwarp', 'opa', "
            "'roce', 'slingshot' or 'none'");
  EXPECT_EQ(fault("level=5"), "'level=5': expected a level of x86-64, 1 to 4");
}

}  // namespace
}  // namespace berth::node
