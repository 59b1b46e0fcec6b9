// SPDX-License-Identifier: Apache-2.0
#include "match/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "node/archspec.hpp"
#include "unit/match/node_of.hpp"

namespace berth::match {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Candidate candidate(const std::map<std::string, std::string>& axes) {
  Candidate made;
  made.descriptor.platform = oci::Platform{"amd64", "linux", {}, {}, {}};
  for (const auto& [axis, value] : axes) {
    made.descriptor.annotations[std::string(kPrefix) + axis] = value;
  }
  made.declared = read_declared(made.descriptor);
  return made;
}

facts::GpuCodeSet set_of(std::string_view words, bool main = false) {
  facts::GpuCodeSet set;
  for (std::string_view word : list_words(words)) set.code.push_back(*parse_gpu_code(word));
  set.files = 1;
  set.example = "/opt/libkernels.so";
  set.main = main;
  return set;
}

const Clause& clause(const Verdict& verdict) {
  static const Clause kNone{"", Outcome::pass, "all pass", "", ""};
  const Clause* decisive = verdict.decisive();
  return decisive != nullptr ? *decisive : kNone;
}

// ---- processor ----------------------------------------------------------------------------------

TEST(JudgeCpu, a_higher_level_is_refused_with_what_would_lift_it) {
  Verdict verdict = judge(candidate({{"cpu", "x86-64-v4"}}), node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("x86-64-v4 (declared); this node is haswell"));
  EXPECT_EQ(clause(verdict).lift, "cpu=x86-64-v4");
}

TEST(JudgeCpu, the_platform_variant_counts_like_an_annotation) {
  Candidate v4 = candidate({});
  v4.descriptor.platform->variant = "v4";
  EXPECT_EQ(judge(v4, node_of("cpu=broadwell"), {}).outcome, Outcome::fail);
  EXPECT_EQ(judge(v4, node_of("cpu=skylake_avx512"), {}).outcome, Outcome::pass);
}

TEST(JudgeCpu, a_microarchitecture_runs_on_its_descendants) {
  Candidate broadwell = candidate({{"cpu", "broadwell"}});
  EXPECT_EQ(judge(broadwell, node_of("cpu=skylake_avx512"), {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(broadwell, node_of("cpu=haswell"), {}).outcome, Outcome::fail);
}

TEST(JudgeCpu, a_name_that_nobody_knows_is_unknown_with_the_nearest) {
  Verdict verdict = judge(candidate({{"cpu", "brodwell"}}), node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("broadwell"));
}

TEST(JudgeCpu, what_was_found_beats_what_is_declared_and_says_so) {
  Candidate liar = candidate({{"cpu", "x86-64-v2"}});
  liar.found.emplace();
  liar.found->cpu.push_back({{4, "note"}, 1, "/usr/bin/app", true});
  Verdict verdict = judge(liar, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_THAT(clause(verdict).reason,
              HasSubstr("/usr/bin/app needs x86-64-v4 (found: note), although x86-64-v2"));
}

TEST(JudgeCpu, a_file_beside_the_main_program_is_a_remark) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->cpu.push_back({{4, "note"}, 3, "/usr/lib/libfast.so", false});
  Verdict verdict = judge(image, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("/usr/lib/libfast.so and 2 more files"));
}

TEST(JudgeCpu, features_are_all_there_or_the_missing_ones_are_named) {
  Candidate image = candidate({{"cpu-features", "avx2 avx512_vnni amx_tile"}});
  EXPECT_EQ(judge(image, node_of("cpu=sapphirerapids"), {}).outcome, Outcome::pass);
  Verdict verdict = judge(image, node_of("cpu=cascadelake"), {});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_EQ(
      clause(verdict).reason,
      "needs amx_tile (declared), which this node does not have; it is cascadelake (x86-64-v4)");
  EXPECT_EQ(clause(verdict).lift, "cpu=sapphirerapids");
}

TEST(JudgeCpu, a_list_that_was_read_from_the_processor_is_whole) {
  Candidate image = candidate({{"cpu-features", "rdtscp"}});
  node::Profile node = node_of("cpu=haswell");
  EXPECT_EQ(judge(image, node, {}).outcome, Outcome::unknown);  // archspec has no such name
  node.cpu.features.push_back("fpu");
  std::sort(node.cpu.features.begin(), node.cpu.features.end());
  EXPECT_EQ(judge(image, node, {}).outcome, Outcome::fail);
  EXPECT_EQ(clause(judge(image, node, {})).lift, "");
  node.cpu.features.push_back("rdtscp");
  std::sort(node.cpu.features.begin(), node.cpu.features.end());
  EXPECT_EQ(judge(image, node, {}).outcome, Outcome::pass);
}

TEST(JudgeCpu, a_level_alone_says_nothing_of_other_features) {
  Candidate image = candidate({{"cpu-features", "avx2 avx_vnni"}});
  Verdict verdict = judge(image, node_of("level=3"), {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_EQ(clause(verdict).reason, "needs avx_vnni (declared); of this node that is not known");
  EXPECT_EQ(judge(candidate({{"cpu-features", "avx2 fma"}}), node_of("level=3"), {}).outcome,
            Outcome::pass);
  node::Profile nothing;
  nothing.architecture = "amd64";
  EXPECT_EQ(judge(image, nothing, {}).outcome, Outcome::unknown);
}

TEST(JudgeCpu, the_kernels_name_for_sse3_and_archspecs_are_one) {
  for (const char* name : {"pni", "sse3"}) {
    EXPECT_EQ(judge(candidate({{"cpu-features", name}}), node_of("cpu=haswell"), {}).outcome,
              Outcome::pass);
  }
}

TEST(JudgePlatform, a_mislabelled_program_is_found_out) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->architecture = "arm64";
  image.found->program = "/app";
  Verdict verdict = judge(image, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("although it is declared for amd64"));
}

// ---- GPUs ---------------------------------------------------------------------------------------

TEST(JudgeGpu, code_for_other_gpus_leaves_them_unused) {
  Verdict verdict =
      judge(candidate({{"gpu", "sm_70"}}), node_of("cpu=broadwell gpu=sm_37 driver=396.44"), {});
  EXPECT_EQ(verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(clause(verdict).reason,
              StartsWith("the GPU stays unused: sm_70 (declared), no PTX; this node is sm_37"));
}

TEST(JudgeGpu, every_gpu_that_the_job_would_see_counts) {
  Candidate image = candidate({{"gpu", "sm_90"}});
  EXPECT_EQ(judge(image, node_of("gpu=sm_90,sm_90 driver=570.10"), {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(image, node_of("gpu=sm_90,sm_80 driver=570.10"), {}).outcome, Outcome::runs_but);
}

TEST(JudgeGpu, ptx_alone_means_minutes_of_compiling) {
  Verdict verdict =
      judge(candidate({{"gpu", "sm_80 compute_80@8.0"}}), node_of("gpu=sm_90 driver=570.10"), {});
  EXPECT_EQ(verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("JIT"));
}

TEST(JudgeGpu, ptx_newer_than_the_driver_does_not_help) {
  Verdict verdict =
      judge(candidate({{"gpu", "sm_80 compute_80@8.7"}}), node_of("gpu=sm_90 driver=535.54"), {});
  EXPECT_THAT(
      clause(verdict).reason,
      HasSubstr("compute_80@8.7 (declared), PTX 8.7 needs driver 570.26 (CUDA 12.8); this node "
                "is sm_90 with driver 535.54 (CUDA 12.2)"));
}

TEST(JudgeGpu, the_main_program_decides_before_other_files) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->gpu_code = {set_of("sm_70", true), set_of("sm_90")};
  node::Profile h200 = node_of("gpu=sm_90 driver=570.10");
  EXPECT_THAT(clause(judge(image, h200, {})).reason, StartsWith("the GPU stays unused"));
  image.found->gpu_code[0].main = false;
  EXPECT_THAT(clause(judge(image, h200, {})).reason, StartsWith("some of its code"));
}

TEST(JudgeGpu, declared_code_that_is_not_there_does_not_count) {
  Candidate liar = candidate({{"gpu", "sm_90"}});
  liar.found.emplace();
  liar.found->gpu_code = {set_of("sm_90a sm_80", true)};
  EXPECT_EQ(judge(liar, node_of("gpu=sm_90 driver=570.10"), {}).outcome, Outcome::pass);
  liar.found->gpu_code = {set_of("sm_80", true)};
  EXPECT_THAT(clause(judge(liar, node_of("gpu=sm_90 driver=570.10"), {})).reason,
              HasSubstr("found in /opt/libkernels.so"));
}

TEST(JudgeGpu, the_driver_that_ptx_needs_is_named_with_that_of_cuda) {
  Candidate image = candidate({{"gpu", "compute_75@8.4"}, {"cuda", "12.4"}});
  Verdict verdict = judge(image, node_of("gpu=sm_86 driver=470.256.02"), {});
  EXPECT_EQ(
      clause(verdict).reason,
      "CUDA 12.4 needs driver 525.60.13 or newer, and its PTX 8.4 needs 550.54.14; this node has "
      "470.256.02");
  EXPECT_EQ(clause(verdict).lift, "driver=550");
  EXPECT_EQ(clause(judge(image, node_of("gpu=sm_86 driver=525.60.13"), {})).lift, "driver=550");
  EXPECT_THAT(clause(judge(image, node_of("gpu=sm_86 driver=550"), {})).reason, HasSubstr("JIT"));
  image = candidate({{"gpu", "sm_80 compute_80@8.4"}, {"cuda", "12.4"}});
  EXPECT_EQ(clause(judge(image, node_of("gpu=sm_86 driver=470.256.02"), {})).lift, "driver=525");
  EXPECT_EQ(clause(judge(image, node_of("gpu=sm_90 driver=470.256.02"), {})).lift, "driver=550");
}

TEST(JudgeGpu, a_compat_package_compiles_newer_ptx) {
  Candidate image = candidate({{"gpu", "compute_80@8.7"}});
  image.found.emplace();
  image.found->compat = "570.26";
  image.found->compat_cuda = "12.8";
  image.found->compat_drivers = {535, 550, 570};
  EXPECT_THAT(clause(judge(image, node_of("gpu=sm_90 driver=535.54 brand=tesla"), {})).reason,
              HasSubstr("JIT"));
  EXPECT_THAT(clause(judge(image, node_of("gpu=sm_90 driver=535.54 brand=geforce"), {})).reason,
              HasSubstr("PTX 8.7 needs driver 570.26"));
}

TEST(JudgeGpu, a_libcuda_that_was_found_is_a_wish_for_gpus) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->user_driver = "390.157";
  Job job{UserLand::image, true};
  Verdict verdict = judge(image, node_of("gpu=sm_90 driver=550.163.01"), job);
  EXPECT_EQ(clause(verdict).reason,
            "user-land driver 390.157 in the image, kernel module 550.163.01");
  EXPECT_EQ(judge(image, node_of("gpu=sm_90 driver=550.163.01"), {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(image, node_of("gpu=none"), {}).outcome, Outcome::runs_but);
}

TEST(JudgeGpu, zstd_needs_a_driver_that_unpacks_it) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->gpu_code = {set_of("sm_90", true)};
  image.found->gpu_code[0].zstd = true;
  EXPECT_THAT(clause(judge(image, node_of("gpu=sm_90 driver=535.54"), {})).reason,
              HasSubstr("packed with zstd, which needs driver 550.54.14"));
  EXPECT_EQ(judge(image, node_of("gpu=sm_90 driver=570.10"), {}).outcome, Outcome::pass);
}

TEST(JudgeGpu, a_gpu_of_which_the_driver_tells_nothing_is_unknown) {
  node::Profile node = node_of("gpu=sm_90 driver=570.10");
  node.gpus[0].compute_capability.clear();
  node.gpus[0].model = "NVIDIA H100";
  Verdict verdict = judge(candidate({{"gpu", "sm_90"}}), node, {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("which code NVIDIA H100 needs is not known"));
}

TEST(JudgeGpu, a_node_without_gpus_is_told) {
  Verdict verdict = judge(candidate({{"gpu", "sm_90"}}), node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("this node has none"));
}

TEST(JudgeGpu, cuda_without_code_that_was_seen_is_no_code) {
  Candidate image = candidate({{"cuda", "12.8"}});
  image.found.emplace();
  Verdict verdict = judge(image, node_of("cpu=haswell"), {});
  EXPECT_EQ(clause(verdict).reason, "what it has for CUDA stays unused: this node has no GPU");
  EXPECT_EQ(clause(verdict).tier, Tier::declared);
}

// ---- driver -------------------------------------------------------------------------------------

TEST(JudgeDriver, the_images_own_user_land_has_the_modules_version_or_fails) {
  Candidate image = candidate({{"cuda", "9.0"}, {"user-driver", "390.30"}});
  node::Profile newer = node_of("gpu=sm_37 driver=396.44");
  Job job{UserLand::image, true};
  Verdict verdict = judge(image, newer, job);
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_EQ(clause(verdict).reason, "user-land driver 390.30 in the image, kernel module 396.44");
  EXPECT_THAT(clause(verdict).remedy, HasSubstr("with bind"));
  job.user_land = UserLand::host;
  EXPECT_EQ(judge(image, newer, job).outcome, Outcome::pass);
  job.user_land = UserLand::image;
  EXPECT_EQ(judge(image, node_of("gpu=sm_37 driver=390.30"), job).outcome, Outcome::pass);
}

TEST(JudgeDriver, a_newer_cuda_is_refused_where_gpus_are_meant) {
  Candidate image = candidate({{"cuda", "13.0"}});
  node::Profile old = node_of("gpu=sm_90 driver=570.133.20");
  EXPECT_EQ(judge(image, old, {UserLand::host, true}).outcome, Outcome::fail);
  EXPECT_EQ(judge(image, old, {UserLand::host, false}).outcome, Outcome::runs_but);
}

TEST(JudgeDriver, a_cuda_newer_than_the_tables_is_compared_with_that_of_the_driver) {
  node::Profile node = node_of("gpu=sm_90 driver=580.65.06");
  node.driver.cuda_version = "13.0";
  Verdict verdict = judge(candidate({{"cuda", "99.0"}}), node, {UserLand::host, true});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_EQ(clause(verdict).reason,
            "CUDA 99.0 needs a driver for CUDA 99.0; this node has 580.65.06, for CUDA 13.0");
  node.driver.module_version = "900.10";
  node.driver.cuda_version = "99.1";
  EXPECT_EQ(judge(candidate({{"cuda", "99.0"}}), node, {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(candidate({{"cuda", "99.3"}}), node, {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(candidate({{"cuda", "100.0"}}), node, {UserLand::host, true}).outcome,
            Outcome::fail);
  node.driver.cuda_version = "";
  verdict = judge(candidate({{"cuda", "99.0"}}), node, {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_EQ(judge(candidate({{"cuda", "5.5"}}), node, {}).outcome, Outcome::pass);
}

TEST(JudgeDriver, the_compiler_of_the_code_tells_the_driver_that_it_needs) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->gpu_code = {set_of("sm_80", true)};
  node::Profile old = node_of("gpu=sm_80 driver=470.82");
  EXPECT_EQ(judge(image, old, {}).outcome, Outcome::pass);
  image.found->gpu_code[0].cuda = "12.4";
  EXPECT_EQ(clause(judge(image, old, {})).reason,
            "CUDA 12.4 needs driver 525.60.13 or newer; this node has 470.82");
  EXPECT_EQ(judge(image, node_of("gpu=sm_80 driver=525.60.13"), {}).outcome, Outcome::pass);
  image.found->gpu_code[0] = set_of("compute_80@8.4", true);
  EXPECT_THAT(clause(judge(image, old, {})).reason, StartsWith("CUDA 12.4 needs driver"));
}

TEST(JudgeDriver, of_files_that_may_be_loaded_the_oldest_cuda_suffices) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->gpu_code = {set_of("sm_80"), set_of("sm_80")};
  node::Profile old = node_of("gpu=sm_80 driver=470.82");
  image.found->gpu_code[0].cuda = "12.4";
  EXPECT_EQ(judge(image, old, {}).outcome, Outcome::pass);  // that of the other is unknown
  image.found->gpu_code[1].cuda = "11.8";
  EXPECT_EQ(judge(image, old, {}).outcome, Outcome::pass);
  image.found->gpu_code[1].cuda = "12.2";
  EXPECT_THAT(clause(judge(image, old, {})).reason, StartsWith("CUDA 12.2 needs driver"));
  image.found->gpu_code[0].main = true;
  EXPECT_THAT(clause(judge(image, old, {})).reason, StartsWith("CUDA 12.4 needs driver"));
}

TEST(JudgeDriver, code_for_linkers_says_nothing) {
  Candidate image = candidate({});
  image.found.emplace();
  image.found->linker_code = {set_of("sm_90")};
  image.found->linker_code[0].cuda = "13";
  EXPECT_EQ(judge(image, node_of("gpu=sm_80 driver=470.82"), {}).outcome, Outcome::pass);
}

TEST(JudgeDriver, a_compat_package_helps_where_it_was_made_for_the_branch) {
  Candidate image = candidate({{"cuda", "13.1"}});
  image.found.emplace();
  image.found->compat = "590.44.01";
  image.found->compat_cuda = "13.1";
  image.found->compat_drivers = {535, 570, 580};
  Job job{UserLand::host, true};
  Verdict verdict = judge(image, node_of("gpu=sm_90 driver=570.133 brand=tesla"), job);
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.rank.compat, 1U);
  EXPECT_EQ(judge(image, node_of("gpu=sm_90 driver=565.10 brand=tesla"), job).outcome,
            Outcome::fail);
  EXPECT_EQ(judge(image, node_of("gpu=sm_89 driver=570.133 brand=geforce"), job).outcome,
            Outcome::fail);
}

TEST(JudgeDriver, nvidias_own_requirements_hold) {
  Candidate image = candidate({});
  image.declared.require = {"cuda>=12.8"};
  Job job{UserLand::host, true};
  EXPECT_EQ(judge(image, node_of("gpu=sm_90 driver=550.54"), job).outcome, Outcome::fail);
  EXPECT_EQ(judge(image, node_of("gpu=sm_90 driver=570.10"), job).outcome, Outcome::pass);
}

TEST(JudgeDriver, an_image_with_an_older_libc_than_the_driver_needs_is_refused) {
  Candidate image = candidate({{"cuda", "12.8"}, {"glibc", "2.17"}});
  node::Profile node = node_of("gpu=sm_90 driver=570.10");
  node.driver.glibc_needed = "2.27";
  EXPECT_EQ(judge(image, node, {UserLand::host, true}).outcome, Outcome::fail);
  EXPECT_EQ(judge(image, node, {UserLand::image, false}).outcome, Outcome::unknown);
}

TEST(JudgeKernel, a_range_is_held_to) {
  Candidate image = candidate({{"kernel", ">=5.10 <7"}});
  EXPECT_EQ(judge(image, node_of("cpu=haswell kernel=6.1.0-13-amd64"), {}).outcome, Outcome::pass);
  EXPECT_EQ(judge(image, node_of("cpu=haswell kernel=4.18"), {}).outcome, Outcome::fail);
}

TEST(Judge, an_axis_that_nobody_knows_is_not_passed_over) {
  Verdict verdict = judge(candidate({{"ram", "64G"}}), node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_THAT(clause(verdict).reason, HasSubstr("ram '64G'"));
}

}  // namespace
}  // namespace berth::match
