// SPDX-License-Identifier: Apache-2.0
#include "engine/node/slurm_features.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

node::NodeGpu h100() {
  node::NodeGpu gpu;
  gpu.vendor = "nvidia";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.compute_capability = "9.0";
  return gpu;
}

node::Profile profile_of(std::vector<node::NodeGpu> gpus) {
  node::Profile profile;
  profile.cpu.level = 3;
  profile.cpu.microarchitecture = "zen3";
  profile.driver.module_version = "570.133.20";
  profile.driver.cuda_version = "12.8";
  profile.gpus = std::move(gpus);
  profile.fabric = {"infiniband"};
  return profile;
}

TEST(SlurmFeatures, name_what_a_job_asks_for) {
  EXPECT_THAT(slurm_features(profile_of({h100(), h100()})),
              ElementsAre("x86-64-v2", "x86-64-v3", "zen3", "nvidia-570", "nvidia-570.133.20",
                          "cuda-11", "cuda-12", "cuda-12.8", "sm_90", "h100", "infiniband"));
}

TEST(SlurmFeatures, are_few_of_a_node_without_gpus) {
  node::Profile profile;
  profile.cpu.microarchitecture = "neoverse_v2";
  EXPECT_THAT(slurm_features(profile), ElementsAre("neoverse_v2"));
}

TEST(SlurmFeatures, have_no_sign_that_a_constraint_would_be_taken_apart_at) {
  node::NodeGpu strange;
  strange.vendor = "amd";
  strange.architecture = "gfx90a:sramecc+";
  strange.model = "Strange(9)&[GPU]*2";
  node::Profile profile;
  profile.gpus = {strange};
  EXPECT_THAT(slurm_features(profile), ElementsAre("gfx90a_sramecc_", "strange_9___gpu__2"));
}

TEST(SlurmGpuType, is_the_short_name_of_the_model) {
  const std::pair<const char*, const char*> cases[] = {
      {"NVIDIA H200", "h200"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA A100-SXM4-40GB", "a100"},
      {"Tesla V100-SXM2-32GB", "v100"},
      {"Tesla K80", "k80"},
      {"NVIDIA RTX A6000", "a6000"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx_6000"},
      {"NVIDIA GeForce RTX 4090", "rtx_4090"},
      {"NVIDIA TITAN RTX", "titan_rtx"},
      {"AMD Instinct MI250X", "mi250x"},
      {"Intel(R) Data Center GPU Max 1550", "max_1550"},
      {"", ""},
  };
  for (const auto& [model, type] : cases) EXPECT_EQ(slurm_gpu_type(model), type) << model;
}

TEST(SlurmGres, counts_by_type_and_slices_by_profile) {
  node::NodeGpu cut = h100();
  cut.mig = true;
  cut.mig_profiles = {"1g.10gb", "1g.10gb", "3g.40gb"};
  EXPECT_THAT(slurm_gres(profile_of({h100(), cut, h100()})),
              ElementsAre(SlurmGres{"h100", 2}, SlurmGres{"h100_1g.10gb", 2},
                          SlurmGres{"h100_3g.40gb", 1}));
}

gpu::Gpu device(uint32_t index, uint32_t minor, int numa) {
  gpu::Gpu gpu;
  gpu.index = index;
  gpu.minor = minor;
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.numa_node = numa;
  gpu.node.path = "/dev/nvidia" + std::to_string(minor);
  return gpu;
}

TEST(SlurmDevices, keep_the_order_of_pci_addresses_whatever_the_minors_are) {
  SlurmNode node;
  node.name = "n1";
  gpu::Inventory inventory;
  inventory.gpus = {device(0, 5, 0), device(1, 2, 1)};
  node.devices = slurm_devices(inventory, {{0, {0, 1}}, {1, {2, 3}}});
  EXPECT_EQ(gres_conf_lines(node),
            "NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia5 Cores=0-1\n"
            "NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia2 Cores=2-3\n");
}

TEST(SlurmDevices, of_a_slice_are_several_files_of_one_gres) {
  SlurmNode node;
  node.name = "n1";
  gpu::Gpu cut = device(0, 0, 0);
  cut.mig_mode = true;
  gpu::MigDevice slice;
  slice.profile = "1g.10gb";
  slice.nodes.resize(2);
  slice.nodes[0].path = "/dev/nvidia-caps/nvidia-cap66";
  slice.nodes[1].path = "/dev/nvidia-caps/nvidia-cap67";
  cut.mig = {slice};
  gpu::Inventory inventory;
  inventory.gpus = {cut};
  node.devices = slurm_devices(inventory, {});
  EXPECT_EQ(gres_conf_lines(node),
            "NodeName=n1 Name=gpu Type=h100_1g.10gb MultipleFiles=/dev/nvidia0,"
            "/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67\n");
}

TEST(SlurmCores, are_numbered_by_core_and_not_by_processor) {
  // Two packages of two cores, whose second threads come last.
  NumaNodes processors = {{0, {0, 1, 4, 5}}, {1, {2, 3, 6, 7}}};
  std::map<unsigned, ProcessorPlace> places;
  for (unsigned one = 0; one < 8; ++one) {
    unsigned core = one % 4;
    places[one] = {{core, core + 4}, core < 2 ? processors[0] : processors[1]};
  }
  EXPECT_THAT(number_cores(processors, places),
              ElementsAre(testing::Pair(0, Numbers{0, 1}), testing::Pair(1, Numbers{2, 3})));
  places[7] = {};
  EXPECT_THAT(number_cores(processors, places), IsEmpty());
}

TEST(SlurmCores, follow_the_packages_where_processors_alternate) {
  NumaNodes processors = {{0, {0, 2}}, {1, {1, 3}}};
  std::map<unsigned, ProcessorPlace> places;
  for (unsigned one = 0; one < 4; ++one) places[one] = {{one}, processors[one % 2]};
  EXPECT_THAT(number_cores(processors, places),
              ElementsAre(testing::Pair(0, Numbers{0, 1}), testing::Pair(1, Numbers{2, 3})));
}

TEST(SlurmCores, are_not_said_where_any_will_do) {
  std::map<unsigned, ProcessorPlace> places = {{0, {{0}, {0, 1}}}, {1, {{1}, {0, 1}}}};
  EXPECT_THAT(number_cores({{0, {0, 1}}}, places), IsEmpty());
}

TEST(SlurmConf, is_one_line) {
  SlurmNode node;
  node.name = "n[1-4]";
  EXPECT_EQ(slurm_conf_line(node), "NodeName=n[1-4]\n");
  node.features = {"x86-64-v3", "sm_90"};
  node.gres = {{"h100", 7}, {"", 1}};
  EXPECT_EQ(slurm_conf_line(node),
            "NodeName=n[1-4] Gres=gpu:h100:7,gpu:1 Feature=x86-64-v3,sm_90\n");
}

}  // namespace
}  // namespace berth::engine
