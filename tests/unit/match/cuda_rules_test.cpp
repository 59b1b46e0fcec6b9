// SPDX-License-Identifier: Apache-2.0
#include "match/cuda_rules.hpp"

#include <gtest/gtest.h>

#include "match/declared.hpp"
#include "scan/cuda_branch.hpp"

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

TEST(GpuCode, cubins_of_tegra_and_of_desktops_do_not_run_on_each_other) {
  EXPECT_EQ(fit("sm_80", "8.7"), CodeClass::none);
  EXPECT_EQ(fit("sm_86", "8.7"), CodeClass::none);
  EXPECT_EQ(fit("sm_87", "8.7"), CodeClass::sass);
  EXPECT_EQ(fit("sm_87", "8.9"), CodeClass::none);
  EXPECT_EQ(fit("sm_72", "7.5"), CodeClass::none);
  EXPECT_EQ(fit("sm_53", "5.3"), CodeClass::sass);
  EXPECT_EQ(fit("sm_100", "10.1"), CodeClass::none);
  EXPECT_EQ(fit("sm_101", "10.3"), CodeClass::none);
  EXPECT_EQ(fit("sm_101", "11.0"), CodeClass::none);
  EXPECT_EQ(fit("compute_80", "8.7"), CodeClass::jit);
  EXPECT_EQ(fit("compute_72", "7.5"), CodeClass::jit);
}

TEST(GpuCode, a_suffix_binds_to_one_capability_or_one_family) {
  EXPECT_EQ(fit("sm_90a", "9.0"), CodeClass::exact);
  EXPECT_EQ(fit("sm_100a", "10.3"), CodeClass::none);
  EXPECT_EQ(fit("sm_100f", "10.3"), CodeClass::family);
  EXPECT_EQ(fit("sm_100f", "12.0"), CodeClass::none);
  EXPECT_EQ(fit("sm_120f", "12.1"), CodeClass::family);
  EXPECT_EQ(fit("sm_100f", "10.1"), CodeClass::none);  // Tegra's Thor is of another family
  EXPECT_EQ(fit("sm_101f", "10.1"), CodeClass::family);
  EXPECT_EQ(fit("sm_101f", "10.3"), CodeClass::none);
  EXPECT_EQ(fit("sm_103f", "10.0"), CodeClass::none);
  EXPECT_EQ(fit("sm_110f", "11.0"), CodeClass::family);
  EXPECT_EQ(fit("sm_110a", "10.1"), CodeClass::none);
  EXPECT_EQ(fit("compute_100f", "10.3"), CodeClass::jit);
  EXPECT_EQ(fit("compute_100f", "10.1"), CodeClass::none);
}

TEST(GpuCode, ptx_is_compiled_for_later_gpus_by_a_driver_that_knows_its_language) {
  EXPECT_EQ(fit("compute_70", "9.0"), CodeClass::jit);
  EXPECT_EQ(fit("compute_90", "8.0"), CodeClass::none);
  EXPECT_EQ(fit("compute_90a", "10.0"), CodeClass::none);
  EXPECT_EQ(fit("compute_80@8.7", "9.0", "12.8"), CodeClass::jit);
  EXPECT_EQ(fit("compute_80@8.7", "9.0", "12.4"), CodeClass::none);
  EXPECT_EQ(fit("compute_80@99.0", "9.0", "13.1"), CodeClass::none);
  auto all = codes("compute_80@8.8 compute_70@8.7");
  CodeFit best = best_fit(all, nvidia("9.0"), "12.4");
  ASSERT_NE(best.newer_ptx, nullptr);
  EXPECT_EQ(best.newer_ptx->isa, "8.7");
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
  EXPECT_EQ(oldest_driver("12.8"), "525.60.13");
  EXPECT_EQ(oldest_driver("13.0"), "580.65.06");
  EXPECT_EQ(oldest_driver("13.9"), "580.65.06");
  EXPECT_EQ(oldest_driver("11.0"), "450.51.05");
  EXPECT_EQ(oldest_driver("11.0.194"), "450.51.05");
  EXPECT_EQ(oldest_driver("11.1"), "450.80.02");
  EXPECT_EQ(oldest_driver("11.8"), "450.80.02");
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
  EXPECT_EQ(driver_of_ptx("8.4"), "550.54.14");
  EXPECT_EQ(driver_of_ptx("77.7"), "");
}

TEST(CudaVersions, a_driver_known_in_part_is_the_newest_that_it_can_be) {
  EXPECT_TRUE(reaches_driver("525.60.13", "525.60.13"));
  EXPECT_FALSE(reaches_driver("525.60.11", "525.60.13"));
  EXPECT_TRUE(reaches_driver("525", "525.60.13"));
  EXPECT_TRUE(reaches_driver("525.60", "525.60.13"));
  EXPECT_FALSE(reaches_driver("525.53", "525.60.13"));
  EXPECT_FALSE(reaches_driver("520", "525.60.13"));
  EXPECT_TRUE(reaches_driver("570.133.20", "570.26"));
  EXPECT_FALSE(reaches_driver("450.66", "450.80.02"));
}

// The tables of CUDA versions, of drivers' branches and of PTX are of the same documents.
TEST(CudaVersions, all_tables_say_the_same) {
  for (const CudaDriver& row : kCudaDrivers) {
    EXPECT_EQ(scan::cuda_of_branch(row.driver), row.cuda) << row.driver;
    EXPECT_TRUE(reaches_driver(row.driver, oldest_driver(row.cuda))) << row.cuda;
  }
  for (const PtxVersion& row : kPtxVersions) EXPECT_NE(driver_of_ptx(row.ptx), "") << row.ptx;
}

}  // namespace
}  // namespace berth::match
