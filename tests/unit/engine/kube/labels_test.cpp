// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;

node::NodeGpu an_h100() {
  node::NodeGpu gpu;
  gpu.vendor = "nvidia";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.compute_capability = "9.0";
  gpu.memory_bytes = uint64_t{81559} << 20;
  return gpu;
}

node::Profile of(std::vector<node::NodeGpu> gpus) {
  node::Profile profile;
  profile.architecture = "amd64";
  profile.cpu.vendor = "GenuineIntel";
  profile.cpu.microarchitecture = "sapphirerapids";
  profile.cpu.ancestors = {"icelake", "x86_64_v4"};
  profile.cpu.level = 4;
  profile.cpu.features = {"aes", "avx512f", "fma", "sse4_2"};
  profile.kernel = {"6.1.0-18-amd64", {"erofs", "overlay"}};
  profile.libc = "glibc 2.36";
  profile.driver = {"570.133.20", "570.133.20", "12.8", "2.17"};
  profile.gpus = std::move(gpus);
  profile.fabric = {"infiniband"};
  return profile;
}

TEST(NodeLabels, of_nvidias_gpus_are_those_of_gpu_feature_discovery) {
  NodeLabels labels = node_labels(of({an_h100(), an_h100()}));
  for (const auto& [name, value] : NodeLabels{{"gpu.count", "2"},
                                              {"gpu.product", "NVIDIA-H100-80GB-HBM3"},
                                              {"gpu.memory", "81559"},
                                              {"gpu.family", "hopper"},
                                              {"gpu.compute.major", "9"},
                                              {"gpu.compute.minor", "0"},
                                              {"mig.capable", "true"},
                                              {"cuda.driver-version.full", "570.133.20"},
                                              {"cuda.driver-version.revision", "20"},
                                              {"cuda.driver.major", "570"},
                                              {"cuda.driver.rev", "20"},
                                              {"cuda.runtime-version.full", "12.8"},
                                              {"cuda.runtime.minor", "8"}}) {
    EXPECT_THAT(labels, Contains(Pair("nvidia.com/" + name, value)));
  }
}

TEST(NodeLabels, of_slices_count_each_profile) {
  node::NodeGpu gpu = an_h100();
  gpu.mig = true;
  gpu.mig_profiles = {"1g.10gb", "1g.10gb", "3g.40gb"};
  NodeLabels labels = node_labels(of({gpu}));
  EXPECT_THAT(labels, AllOf(Contains(Pair("nvidia.com/mig-1g.10gb.count", "2")),
                            Contains(Pair("nvidia.com/mig-3g.40gb.count", "1")),
                            Contains(Pair("nvidia.com/gpu.count", "0")),
                            Contains(Pair("nvidia.com/mig.strategy", "mixed"))));
}

TEST(NodeLabels, say_nothing_of_mig_where_it_is_not_known) {
  node::NodeGpu gpu = an_h100();
  gpu.compute_capability = "12.0";
  EXPECT_THAT(node_labels(of({gpu})), Not(Contains(Key("nvidia.com/mig.capable"))));
  gpu.compute_capability = "8.6";
  EXPECT_THAT(node_labels(of({gpu})), Contains(Pair("nvidia.com/mig.capable", "false")));
}

TEST(NodeLabels, of_a_node_without_gpus_have_no_name_of_nvidia) {
  NodeLabels labels = node_labels(of({}));
  EXPECT_THAT(labels, Not(Contains(Key(HasSubstr("nvidia")))));
  EXPECT_THAT(labels, Contains(Pair("berth.dev/gpu.count", "0")));
}

TEST(NodeLabels, of_processor_and_kernel_have_nfds_names) {
  NodeLabels labels = node_labels(of({an_h100()}));
  for (const auto& [name, value] : NodeLabels{{"cpu-cpuid.AVX512F", "true"},
                                              {"cpu-cpuid.AESNI", "true"},
                                              {"cpu-model.vendor_id", "Intel"},
                                              {"kernel-version.full", "6.1.0-18-amd64"},
                                              {"kernel-version.major", "6"},
                                              {"kernel-version.revision", "0"},
                                              {"pci-10de.present", "true"},
                                              {"custom-rdma.capable", "true"}}) {
    EXPECT_THAT(labels, Contains(Pair("feature.node.kubernetes.io/" + name, value)));
  }
  EXPECT_THAT(labels, Not(Contains(Key(HasSubstr("SSE4")))));
}

TEST(NodeLabels, of_our_own_name_each_processor_whose_code_runs) {
  NodeLabels labels = node_labels(of({}));
  EXPECT_THAT(labels, AllOf(Contains(Pair("berth.dev/cpu.runs.sapphirerapids", "true")),
                            Contains(Pair("berth.dev/cpu.runs.x86_64_v4", "true")),
                            Contains(Pair("berth.dev/cpu.level", "4")),
                            Contains(Pair("berth.dev/kernel.erofs", "true")),
                            Contains(Pair("berth.dev/libc", "glibc-2.36")),
                            Contains(Pair("berth.dev/fabric.infiniband", "true"))));
}

TEST(NodeLabels, are_valid_whatever_the_profile_says) {
  node::NodeGpu gpu = an_h100();
  gpu.model = std::string(300, 'x') + "\n/\xff";
  gpu.compute_capability = "..";
  gpu.architecture = "gfx90a:sramecc+:xnack-";
  gpu.mig_profiles = {"", "1g.10gb+me", "///"};
  node::Profile profile = of({gpu});
  profile.cpu.microarchitecture = "-a b-";
  profile.driver.module_version = "...";
  profile.libc = "-";
  profile.kernel.release = "..";
  NodeLabels labels = node_labels(profile);
  EXPECT_THAT(labels, Each(Pair(MatchesRegex("[a-z0-9.]+/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"),
                                MatchesRegex("[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"))));
  for (const auto& [name, value] : labels) {
    EXPECT_LE(value.size(), 63);
    EXPECT_LE(name.size() - name.find('/') - 1, 63);
  }
}

TEST(LabelValue, keeps_what_kubernetes_accepts) {
  EXPECT_EQ(label_value("6.1.0-18-amd64"), "6.1.0-18-amd64");
  EXPECT_EQ(label_value("glibc 2.36"), "glibc-2.36");
  EXPECT_EQ(label_value("--a--"), "a");
  EXPECT_EQ(label_value("\xc3\xa9"), "");
  EXPECT_EQ(label_value(std::string(100, 'a')).size(), 63);
}

TEST(NfdFeatureFile, leaves_out_what_nfd_finds_itself) {
  std::string text = nfd_feature_file(node_labels(of({an_h100()})));
  EXPECT_THAT(text, HasSubstr("\nnvidia.com/gpu.count=1\n"));
  EXPECT_THAT(text, HasSubstr("berth.dev/cpu.level=4\n"));
  EXPECT_THAT(text, Not(HasSubstr("feature.node")));
}

}  // namespace
}  // namespace berth::engine
