// SPDX-License-Identifier: Apache-2.0
#include "match/declared.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::match {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Declared of(const std::map<std::string, std::string>& axes) {
  oci::Descriptor entry;
  for (const auto& [axis, value] : axes) entry.annotations[std::string(kPrefix) + axis] = value;
  return read_declared(entry);
}

TEST(Declared, every_axis_is_read) {
  Declared declared = of({{"cpu", "x86-64-v3"},
                          {"cpu-features", "avx512_vnni, amx_tile avx512_vnni"},
                          {"gpu", "sm_80, sm_90a compute_90@8.7"},
                          {"cuda", "12.8"},
                          {"user-driver", "570.133.20"},
                          {"driver", ">=525.60.13 <600"},
                          {"kernel", ">=5.10"},
                          {"glibc", "2.36"},
                          {"mpi", "OpenMPI"},
                          {"fabric", "infiniband,efa"},
                          {"priority", "-3"},
                          {"name", "for people"}});
  EXPECT_TRUE(declared.any);
  EXPECT_EQ(declared.cpu, "x86-64-v3");
  EXPECT_THAT(declared.cpu_features, ElementsAre("amx_tile", "avx512_vnni"));
  EXPECT_EQ(gpu_codes_text(declared.gpu), "sm_80 sm_90a compute_90@8.7");
  EXPECT_EQ(declared.cuda, "12.8");
  EXPECT_EQ(declared.driver.size(), 2U);
  EXPECT_EQ(declared.driver[1].op, VersionNeed::Op::less);
  EXPECT_EQ(declared.mpi, "openmpi");
  EXPECT_THAT(declared.fabric, ElementsAre("infiniband", "efa"));
  EXPECT_EQ(declared.priority, -3);
  EXPECT_THAT(declared.puzzles, IsEmpty());
}

TEST(Declared, names_of_compilers_and_of_archspec_are_one) {
  EXPECT_EQ(of({{"cpu", "skylake-avx512"}}).cpu, "skylake_avx512");
  EXPECT_EQ(of({{"cpu", "x86_64_v4"}}).cpu, "x86-64-v4");
}

TEST(Declared, what_does_not_read_is_a_puzzle_and_says_nothing) {
  Declared declared = of({{"gpu", "sm_9x"},
                          {"cuda", "twelve"},
                          {"priority", "high"},
                          {"ram", "64G"},
                          {"cpu", "a b"},
                          {"cpu-features", "AVX512VNNI"},
                          {"driver", ">= 5"}});
  EXPECT_EQ(declared.puzzles.size(), 7U);
  EXPECT_FALSE(declared.any);
  EXPECT_FALSE(declared.gpu_said);
}

TEST(Declared, an_entry_for_no_gpu_says_so) {
  EXPECT_TRUE(of({{"gpu", "none"}}).gpu_said);
  EXPECT_THAT(of({{"gpu", "none"}}).gpu, IsEmpty());
}

TEST(Declared, hostile_values_are_bounded) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "sm_80 ";
  EXPECT_EQ(of({{"gpu", many}}).puzzles.size(), 1U);
  EXPECT_EQ(of({{"cpu", std::string(100'000, 'x')}}).puzzles.size(), 1U);
  std::map<std::string, std::string> axes;
  for (int i = 0; i < 1000; ++i) axes["unknown" + std::to_string(i)] = "1";
  EXPECT_LE(of(axes).puzzles.size(), 8U);
}

TEST(Declared, features_of_other_proxies_are_understood) {
  oci::Descriptor entry;
  entry.platform = oci::Platform{"amd64", "linux", {}, {"cpu:broadwell", "nvcap:5.2", "x"}, {}};
  Declared declared = read_declared(entry);
  EXPECT_EQ(declared.cpu, "broadwell");
  EXPECT_EQ(gpu_codes_text(declared.gpu), "sm_52");
}

TEST(Declared, a_config_says_it_by_labels_and_variables) {
  oci::ContainerDefaults config;
  config.labels["dev.berth.variant.cuda"] = "12.4";
  config.env = {"NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_REQUIRE_ARCH=arch>=7.0"};
  Declared declared = read_declared(config);
  EXPECT_EQ(declared.cuda, "12.4");
  EXPECT_THAT(declared.require, ElementsAre("cuda>=12.4", "arch>=7.0"));
  config.env.emplace_back("NVIDIA_DISABLE_REQUIRE=true");
  EXPECT_THAT(read_declared(config).require, IsEmpty());
}

TEST(Declared, the_index_has_the_last_word_over_the_config) {
  Declared merged = merge(of({{"cuda", "12.4"}, {"glibc", "2.31"}, {"gpu", "sm_70"}}),
                          of({{"cuda", "12.8"}, {"gpu", "sm_90"}}));
  EXPECT_EQ(merged.cuda, "12.8");
  EXPECT_EQ(merged.glibc, "2.31");
  EXPECT_EQ(gpu_codes_text(merged.gpu), "sm_90");
}

TEST(GpuCode, texts_come_back) {
  for (std::string_view text :
       {"sm_70", "sm_90a", "sm_120f", "compute_90", "compute_90@8.7", "gfx942", "gfx90a:xnack+",
        "gfx11-generic", "gfx9-generic:xnack-"}) {
    auto code = parse_gpu_code(text);
    ASSERT_TRUE(code) << text;
    EXPECT_EQ(gpu_code_text(*code), text);
  }
  for (std::string_view text : {"", "sm_", "sm_9", "sm_x0", "compute_90@", "5", "5.22", "gfx",
                                "gfxyz9", "gfx13-genetic", "sm_99999"}) {
    EXPECT_FALSE(parse_gpu_code(text)) << text;
  }
}

}  // namespace
}  // namespace berth::match
