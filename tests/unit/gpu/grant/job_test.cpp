// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/grant/select.hpp"
#include "gpu/grant/visible.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Want = Request::Want;

std::optional<Job> job_of(const std::vector<std::string>& environment) {
  return find_job(Variables(environment, {}));
}

TEST(Job, is_told_by_its_schedulers_variable) {
  const std::pair<const char*, const char*> cases[] = {
      {"SLURM_JOB_ID", "Slurm"}, {"SLURM_JOBID", "Slurm"},     {"PBS_JOBID", "PBS"},
      {"LSB_JOBID", "LSF"},      {"_CONDOR_SLOT", "HTCondor"}, {"_CONDOR_JOB_AD", "HTCondor"},
      {"FLUX_JOB_ID", "Flux"}};
  for (const auto& [variable, scheduler] : cases) {
    auto job = job_of({std::string(variable) + "=17"});
    ASSERT_TRUE(job) << variable;
    EXPECT_EQ(job->scheduler, scheduler);
    EXPECT_EQ(job->evidence, variable);
  }
  EXPECT_FALSE(job_of({"CUDA_VISIBLE_DEVICES=0", "JOB_ID=3"}));
}

TEST(Job, names_its_gpus_for_each_vendor) {
  auto job = job_of({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=2,3", "GPU_DEVICE_ORDINAL=2,3",
                     "ROCR_VISIBLE_DEVICES=0", "ZE_AFFINITY_MASK=1.0"});
  ASSERT_TRUE(job);
  ASSERT_EQ(job->limits.size(), 3U);
  EXPECT_THAT(job->limits[0].ids, ElementsAre("2", "3"));
  EXPECT_THAT(job->limits[0].vendors, ElementsAre(Vendor::nvidia));
  EXPECT_EQ(job->limits[1].variable, "ROCR_VISIBLE_DEVICES");
  EXPECT_THAT(job_of({"PBS_JOBID=1", "CUDA_VISIBLE_DEVICES=2"})->limits[0].vendors,
              ElementsAre(Vendor::nvidia, Vendor::amd));
  EXPECT_THAT(job->limits[2].ids, ElementsAre("1"));
  EXPECT_THAT(job->variables, ElementsAre("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                          "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"));
}

TEST(Job, without_a_selection_its_allocation_counts) {
  auto slurm = job_of({"SLURM_JOB_ID=1", "SLURM_JOB_GPUS=4,5", "SLURM_STEP_GPUS=5"});
  ASSERT_EQ(slurm->limits.size(), 1U);
  EXPECT_EQ(slurm->limits[0].variable, "SLURM_STEP_GPUS");
  EXPECT_TRUE(slurm->limits[0].of_the_machine);
  auto condor = job_of({"_CONDOR_SLOT=slot1_1", "_CONDOR_AssignedGPUs=CUDA0,GPU-8f2b"});
  ASSERT_EQ(condor->limits.size(), 1U);
  EXPECT_THAT(condor->limits[0].ids, ElementsAre("0", "GPU-8f2b"));
  EXPECT_FALSE(condor->limits[0].of_the_machine);
}

TEST(Selection, ends_where_nothing_is_named) {
  EXPECT_THAT(parse_selection("0,GPU-8f2b,MIG-1,-1,3"), ElementsAre("0", "GPU-8f2b", "MIG-1"));
  for (const char* none : {"", "-1", "NoDevFiles", "none", "void", "10000", "x,0"}) {
    EXPECT_THAT(parse_selection(none), IsEmpty()) << none;
  }
  EXPECT_FALSE(job_of({"_CONDOR_SLOT=a", "_CONDOR_AssignedGPUs=10000"})->has_gpus());
  EXPECT_FALSE(job_of({"FLUX_JOB_ID=f", "CUDA_VISIBLE_DEVICES=-1"})->has_gpus());
}

/// A job's request on a machine of eight: names of what is selected, or the line.
std::string selected(const std::vector<std::string>& environment, const std::string& wish,
                     const Inventory& inventory = gpu_machine(8)) {
  auto request = parse_request(wish);
  if (!request.ok()) return to_line(request.error());
  request->limits = job_of(environment)->limits;
  auto many = select(*request, inventory);
  if (!many.ok()) return to_line(many.error());
  std::string out;
  for (const Selected& one : *many) {
    out += std::to_string(one.gpu->index);
    if (one.slice != nullptr) out += ":" + std::to_string(one.slice->index);
    out += " ";
  }
  return out;
}

TEST(JobLimit, all_means_all_of_the_jobs) {
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=4,5"}, "all"), "4 5 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=5,3"}, "all"), "5 3 ");
  EXPECT_EQ(selected({"PBS_JOBID=1", "CUDA_VISIBLE_DEVICES=GPU-b6-0000,GPU-aa1"}, "all"), "6 1 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1"}, "all"), "0 1 2 3 4 5 6 7 ");
}

TEST(JobLimit, a_count_is_taken_from_the_jobs) {
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=4,5,6"}, "2"), "4 5 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=4,5"}, "3"),
            "--gpus 3: CUDA_VISIBLE_DEVICES=4,5 leaves 2 GPUs; try: berth gpu list");
}

TEST(JobLimit, a_gpu_outside_of_it_is_refused_with_the_variable) {
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=4,5"}, "device=5"), "5 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=4,5"}, "device=5,0"),
            "--gpus device=0: not one of the GPUs of CUDA_VISIBLE_DEVICES=4,5; try: --gpus all for "
            "those");
}

TEST(JobLimit, a_job_without_gpus_gets_none) {
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=NoDevFiles"}, "all"),
            "--gpus all: CUDA_VISIBLE_DEVICES=NoDevFiles leaves 0 GPUs; try: --gpus none");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES="}, "all"),
            "--gpus all: CUDA_VISIBLE_DEVICES= leaves 0 GPUs; try: --gpus none");
}

TEST(JobLimit, a_number_too_large_ends_the_list_as_in_cuda) {
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1,9,2"}, "all"), "1 ");
}

TEST(JobLimit, slices_are_named_by_id_and_a_number_stands_for_all_of_a_gpu) {
  Inventory machine = sliced_machine(3);
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=MIG-c1"}, "all", machine), "1:1 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1"}, "all", machine), "1:0 1:1 1:2 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=MIG-c1"}, "device=1:0", machine),
            "--gpus device=1:0: not one of the GPUs of CUDA_VISIBLE_DEVICES=MIG-c1; try: --gpus "
            "all for those");
}

TEST(JobLimit, hip_counts_what_rocr_has_left) {
  Inventory machine = gpu_machine(8, Vendor::amd);
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "ROCR_VISIBLE_DEVICES=4,6,7", "HIP_VISIBLE_DEVICES=2,0"},
                     "all", machine),
            "7 4 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "HIP_VISIBLE_DEVICES=2,0"}, "all", machine), "2 0 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=3"}, "all", machine), "3 ");
}

TEST(JobLimit, one_vendors_variable_says_nothing_of_anothers_gpus) {
  Inventory machine = gpu_machine(2, Vendor::intel);
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1"}, "all", machine), "0 1 ");
  EXPECT_EQ(selected({"SLURM_JOB_ID=1", "ZE_AFFINITY_MASK=1.0,1.1"}, "all", machine), "1 ");
}

std::string translated(const std::vector<std::string>& environment, const std::string& wish,
                       const Inventory& inventory, const std::string& order = "") {
  auto job = job_of(environment);
  auto request = parse_request(wish);
  request->limits = job->limits;
  request->translate = job->variables;
  request->device_order = order;
  auto many = select(*request, inventory);
  if (!many.ok()) return to_line(many.error());
  std::string out;
  for (const std::string& one : translate_selection(*request, *many)) out += one + " ";
  return out;
}

TEST(Translation, counts_as_the_container_does) {
  Inventory machine = gpu_machine(12);
  // As strings "10" sorts before "3".
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=3,10,5"}, "all", machine),
            "CUDA_VISIBLE_DEVICES=0,2,1 CUDA_DEVICE_ORDER=PCI_BUS_ID ");
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=7"}, "all", machine),
            "CUDA_VISIBLE_DEVICES=0 ");
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=3,4,5"}, "device=5,4", machine),
            "CUDA_VISIBLE_DEVICES=1,0 CUDA_DEVICE_ORDER=PCI_BUS_ID ");
}

TEST(Translation, every_variable_that_the_vendor_reads_is_given_anew) {
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=1",
                        "ROCR_VISIBLE_DEVICES=1", "ZE_AFFINITY_MASK=1"},
                       "all", gpu_machine(2)),
            "CUDA_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=0 ");
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "ROCR_VISIBLE_DEVICES=3,1", "HIP_VISIBLE_DEVICES=0,1"},
                       "all", gpu_machine(4, Vendor::amd)),
            "ROCR_VISIBLE_DEVICES=1,0 HIP_VISIBLE_DEVICES=0,1 ");
  EXPECT_EQ(
      translated({"SLURM_JOB_ID=1", "ZE_AFFINITY_MASK=1"}, "all", gpu_machine(2, Vendor::intel)),
      "ZE_AFFINITY_MASK=0 ");
}

TEST(Translation, goes_by_id_for_slices_and_where_the_container_counts_by_speed) {
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=MIG-c2"}, "all", sliced_machine(3)),
            "CUDA_VISIBLE_DEVICES=MIG-c2 ");
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1,0"}, "all", gpu_machine(2),
                       "FASTEST_FIRST"),
            "CUDA_VISIBLE_DEVICES=GPU-aa1-0000,GPU-aa0-0000 ");
  EXPECT_EQ(translated({"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=1,0"}, "all", gpu_machine(2),
                       "PCI_BUS_ID"),
            "CUDA_VISIBLE_DEVICES=1,0 ");
}

TEST(StaleSelection, is_told_and_nothing_else) {
  Inventory machine = sliced_machine(2);
  std::vector<Selected> granted = {{machine.gpus.data(), nullptr},
                                   {&machine.gpus[1], machine.gpus[1].mig.data()}};
  Request request;
  auto lines = [&](const std::string& typed) {
    request.typed = {typed};
    return stale_selections(request, granted);
  };
  for (const char* good : {"=0", "=1,0", "=GPU-aa0", "=MIG-c0", "=MIG-GPU-aa1-0000/7/0", "=", "=-1",
                           "=0,-1,9", "=NoDevFiles"}) {
    EXPECT_THAT(lines("CUDA_VISIBLE_DEVICES" + std::string(good)), IsEmpty()) << good;
  }
  EXPECT_THAT(lines("CUDA_VISIBLE_DEVICES=0,2"),
              ElementsAre("CUDA_VISIBLE_DEVICES=0,2: '2' names no GPU of the container, which has "
                          "2 GPUs"));
  EXPECT_THAT(lines("CUDA_VISIBLE_DEVICES=GPU-b"),
              ElementsAre("CUDA_VISIBLE_DEVICES=GPU-b: 'GPU-b' names no GPU of the container, "
                          "which has 2 GPUs"));
  EXPECT_THAT(lines("ZE_AFFINITY_MASK=0.1,1.0"), IsEmpty());
  granted.clear();
  EXPECT_THAT(lines("ROCR_VISIBLE_DEVICES=0"),
              ElementsAre("ROCR_VISIBLE_DEVICES=0: '0' names no GPU of the container, which has no "
                          "GPU"));
  // An image may have written it.
  auto giant = lines("CUDA_VISIBLE_DEVICES=" + std::string(1 << 20, '7'));
  ASSERT_EQ(giant.size(), 1U);
  EXPECT_LT(giant[0].size(), 300U);
}

}  // namespace
}  // namespace berth::gpu
