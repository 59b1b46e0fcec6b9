// SPDX-License-Identifier: Apache-2.0
#include "match/cuda_rules.hpp"

#include <gtest/gtest.h>

#include "match/declared.hpp"

namespace berth::match {
namespace {

std::vector<facts::GpuCode> codes(std::string_view words) {
  std::vector<facts::GpuCode> out;
  for (std::string_view word : list_words(words)) out.push_back(*parse_gpu_code(word));
  return out;
}

node::NodeGpu nvidia(const std::string& capability) {
  node::NodeGpu gpu;
  gpu.vendor = "nvidia";
  gpu.compute_capability = capability;
  return gpu;
}

CodeClass fit(std::string_view words, const std::string& capability,
              std::string_view cuda = "13.0") {
  return best_fit(codes(words), nvidia(capability), cuda).code_class;
}

TEST(GpuCode, plain_sass_runs_on_its_major_version_and_later_minors) {
  EXPECT_EQ(fit("sm_80", "8.0"), CodeClass::sass);
  EXPECT_EQ(fit("sm_80", "8.9"), CodeClass::sass);
  EXPECT_EQ(fit("sm_86", "8.0"), CodeClass::none);
  EXPECT_EQ(fit("sm_80", "9.0"), CodeClass::none);
  EXPECT_EQ(fit("sm_70", "3.7"), CodeClass::none);
}

TEST(GpuCode, a_suffix_binds_to_one_capability_or_one_family) {
  EXPECT_EQ(fit("sm_90a", "9.0"), CodeClass::exact);
  EXPECT_EQ(fit("sm_100a", "10.3"), CodeClass::none);
  EXPECT_EQ(fit("sm_100f", "10.3"), CodeClass::family);
  EXPECT_EQ(fit("sm_100f", "12.0"), CodeClass::none);
  EXPECT_EQ(fit("sm_120f", "12.1"), CodeClass::family);
}

TEST(GpuCode, ptx_is_compiled_for_later_gpus_by_a_driver_that_knows_its_language) {
  EXPECT_EQ(fit("compute_70", "9.0"), CodeClass::jit);
  EXPECT_EQ(fit("compute_90", "8.0"), CodeClass::none);
  EXPECT_EQ(fit("compute_90a", "10.0"), CodeClass::none);
  EXPECT_EQ(fit("compute_80@8.7", "9.0", "12.8"), CodeClass::jit);
  EXPECT_EQ(fit("compute_80@8.7", "9.0", "12.4"), CodeClass::none);
  EXPECT_TRUE(best_fit(codes("compute_80@8.7"), nvidia("9.0"), "12.4").newer_ptx);
}

TEST(GpuCode, the_nearest_of_several_counts) {
  auto all = codes("compute_70 sm_80 sm_86 sm_90");
  CodeFit best = best_fit(all, nvidia("8.9"), "12.8");
  EXPECT_EQ(best.code_class, CodeClass::sass);
  EXPECT_EQ(best.minor, 6U);
  EXPECT_EQ(gpu_code_text(*best.code), "sm_86");
}

TEST(GpuCode, amd_code_runs_on_its_architecture_with_the_same_settings) {
  node::NodeGpu gpu;
  gpu.vendor = "amd";
  gpu.architecture = "gfx90a:sramecc+:xnack-";
  EXPECT_EQ(best_fit(codes("gfx90a"), gpu, "").code_class, CodeClass::exact);
  EXPECT_EQ(best_fit(codes("gfx90a:xnack-"), gpu, "").code_class, CodeClass::exact);
  EXPECT_EQ(best_fit(codes("gfx90a:xnack+"), gpu, "").code_class, CodeClass::none);
  EXPECT_EQ(best_fit(codes("gfx942 sm_90"), gpu, "").code_class, CodeClass::none);
}

TEST(GpuCode, generic_amd_code_runs_on_the_gpus_of_its_family) {
  node::NodeGpu gpu;
  gpu.vendor = "amd";
  gpu.architecture = "gfx906:sramecc+:xnack-";
  EXPECT_EQ(best_fit(codes("gfx9-generic"), gpu, "").code_class, CodeClass::family);
  EXPECT_EQ(best_fit(codes("gfx9-generic gfx906"), gpu, "").code_class, CodeClass::exact);
  EXPECT_EQ(best_fit(codes("gfx9-generic:xnack+"), gpu, "").code_class, CodeClass::none);
  EXPECT_EQ(best_fit(codes("gfx9-4-generic gfx10-1-generic"), gpu, "").code_class, CodeClass::none);
  gpu.architecture = "gfx1151";
  EXPECT_EQ(best_fit(codes("gfx11-generic"), gpu, "").code_class, CodeClass::family);
  gpu.architecture = "gfx908";  // of no generic processor
  EXPECT_EQ(best_fit(codes("gfx9-generic gfx9-4-generic"), gpu, "").code_class, CodeClass::none);
}

TEST(CudaVersions, minor_versions_are_compatible_from_11_on) {
  EXPECT_EQ(oldest_driver("12.8"), "525");
  EXPECT_EQ(oldest_driver("13.0"), "580");
  EXPECT_EQ(oldest_driver("9.2"), "396.26");
  EXPECT_EQ(oldest_driver("9.2.148"), "396.26");
  EXPECT_EQ(oldest_driver("99.0"), "");
}

TEST(CudaVersions, ptx_languages_belong_to_cuda_versions) {
  EXPECT_EQ(cuda_of_ptx("7.8"), "11.8");
  EXPECT_EQ(cuda_of_ptx("8.0"), "12.0");
  EXPECT_EQ(cuda_of_ptx("8.7"), "12.8");
  EXPECT_EQ(cuda_of_ptx("6.2"), "9.2");
  EXPECT_EQ(cuda_of_ptx("77.7"), "");
}

}  // namespace
}  // namespace berth::match
