// SPDX-License-Identifier: Apache-2.0
#include "bake/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bake {
namespace {

using facts::GpuCode;
using testing::IsEmpty;

match::Declared declared(const std::map<std::string, std::string>& words) {
  oci::Descriptor entry;
  for (const auto& [name, value] : words) entry.annotations["dev.berth.variant." + name] = value;
  return match::read_declared(entry);
}

facts::ImageFacts needs_level(uint32_t level, bool main) {
  facts::ImageFacts found;
  found.cpu.push_back({{level, "note"}, 1, "/app", main});
  return found;
}

facts::ImageFacts has_code(std::vector<GpuCode> code) {
  facts::ImageFacts found;
  found.gpu_code.push_back({std::move(code), false, 1, "/lib/k.so", true});
  return found;
}

std::string told(const match::Declared& words, const facts::ImageFacts& found) {
  auto findings = compare(words, "amd64", found);
  if (findings.empty()) return "";
  return (findings[0].kind == Finding::Kind::lie ? "lie: " : "remark: ") + findings[0].text;
}

TEST(Compare, a_program_that_needs_more_than_is_declared_is_a_lie) {
  EXPECT_EQ(told(declared({{"cpu", "x86-64-v2"}}), needs_level(3, true)),
            "lie: declares x86-64-v2; /app needs x86-64-v3 (found: note)");
  EXPECT_EQ(told({}, needs_level(3, true)),
            "lie: declares no processor; /app needs x86-64-v3 (found: note)");
  EXPECT_EQ(told(declared({{"cpu", "x86-64-v3"}}), needs_level(3, true)), "");
  EXPECT_EQ(told(declared({{"cpu", "skylake_avx512"}}), needs_level(4, true)), "");
  EXPECT_EQ(told(declared({{"cpu", "broadwell"}}), needs_level(4, true)),
            "lie: declares broadwell; /app needs x86-64-v4 (found: note)");
}

TEST(Compare, a_feature_that_other_processors_have_too_means_a_level_of_x86_64) {
  EXPECT_EQ(told(declared({{"cpu-features", "aes"}}), needs_level(2, true)), "");
  EXPECT_EQ(told(declared({{"cpu-features", "aes"}}), needs_level(4, true)),
            "lie: declares aes; /app needs x86-64-v4 (found: note)");
}

TEST(Compare, another_file_that_needs_more_is_a_remark) {
  EXPECT_EQ(told({}, needs_level(3, false)),
            "remark: declares no processor; /app needs x86-64-v3 (found: note)");
}

TEST(Compare, code_that_is_promised_has_to_be_there) {
  auto both = declared({{"gpu", "sm_80 sm_90"}});
  EXPECT_EQ(told(both, has_code({{GpuCode::Kind::sass, "80", ""}})),
            "lie: declares sm_90; its code is sm_80");
  EXPECT_EQ(
      told(both, has_code({{GpuCode::Kind::sass, "80", ""}, {GpuCode::Kind::sass, "90", ""}})), "");
  EXPECT_EQ(
      told(both, has_code({{GpuCode::Kind::sass, "80", ""}, {GpuCode::Kind::ptx, "80", "8.0"}})),
      "remark: declares sm_90; its code is sm_80 compute_80@8.0, which the driver has to "
      "compile");
  EXPECT_EQ(told(declared({{"gpu", "sm_86"}}), has_code({{GpuCode::Kind::sass, "80", ""}})), "");
  EXPECT_EQ(told(declared({{"gpu", "sm_90"}}), {}),
            "remark: declares sm_90; no code for GPUs was found in its files");
}

TEST(Compare, versions_have_to_hold) {
  facts::ImageFacts found;
  found.cuda_runtimes = {"12.8"};
  found.user_driver = "396.44";
  found.glibc = "2.31";
  EXPECT_EQ(told(declared({{"cuda", "12.6"}}), found), "lie: declares 12.6; it has CUDA 12.8");
  EXPECT_EQ(told(declared({{"cuda", "12.8"}}), found), "");
  EXPECT_EQ(told(declared({{"user-driver", "390.30"}}), found),
            "lie: declares user-land driver 390.30; it has 396.44");
  EXPECT_EQ(told(declared({{"glibc", "2.36"}}), found), "lie: declares 2.36; it has glibc 2.31");
  EXPECT_EQ(told(declared({{"glibc", "2.28"}}), found), "");
}

TEST(Compare, mpi_and_machine_have_to_hold) {
  facts::ImageFacts found;
  found.mpi.push_back({"/usr/lib/libmpi.so.12", "mpich", "libmpi.so.12"});
  EXPECT_EQ(told(declared({{"mpi", "openmpi"}}), found),
            "lie: declares openmpi; it has mpich (/usr/lib/libmpi.so.12)");
  EXPECT_EQ(told(declared({{"mpi", "mpich"}}), found), "");
  facts::ImageFacts arm;
  arm.architecture = "arm64";
  arm.program = "/app";
  EXPECT_EQ(told({}, arm), "lie: declares amd64; its program /app is for arm64");
}

TEST(Compare, lies_come_first) {
  facts::ImageFacts found = needs_level(3, false);
  found.cuda_runtimes = {"12.8"};
  auto findings = compare(declared({{"cuda", "11.8"}}), "amd64", found);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].about, "cuda");
  EXPECT_EQ(findings[1].about, "cpu");
}

}  // namespace
}  // namespace berth::bake
