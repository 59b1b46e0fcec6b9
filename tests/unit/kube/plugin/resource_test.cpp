// SPDX-License-Identifier: Apache-2.0
#include "kube/plugin/resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

gpu::Gpu card(uint32_t index, const std::string& model, gpu::Vendor vendor = gpu::Vendor::nvidia) {
  gpu::Gpu one;
  one.vendor = vendor;
  one.index = index;
  one.pci_address = "0000:0" + std::to_string(index + 1) + ":00.0";
  one.uuid = "GPU-" + std::to_string(index);
  one.model = model;
  return one;
}

std::string label(const std::string& model) {
  gpu::Gpu one = card(0, model);
  return model_label({&one});
}

std::string error_of(const std::string& text) {
  auto parsed = parse_resources(text, "node.toml");
  return parsed.ok() ? "" : to_line(parsed.error());
}

TEST(ModelLabel, is_the_name_that_people_use) {
  EXPECT_EQ(label("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(label("NVIDIA A100-SXM4-40GB"), "a100");
  EXPECT_EQ(label("NVIDIA A100-PCIE-40GB"), "a100");
  EXPECT_EQ(label("Tesla K80"), "k80");
  EXPECT_EQ(label("Tesla V100-SXM2-32GB"), "v100");
  EXPECT_EQ(label("NVIDIA GeForce RTX 4090"), "rtx-4090");
  EXPECT_EQ(label("NVIDIA RTX 6000 Ada Generation"), "rtx-6000-ada-generation");
  EXPECT_EQ(label("AMD Instinct MI300X"), "mi300x");
  EXPECT_EQ(label("NVIDIA H200 NVL"), "h200");
  EXPECT_EQ(label(""), "");
  EXPECT_EQ(label("\n///"), "");
}

TEST(Resources, without_a_file_a_gpu_has_a_name_for_all_its_vendor_and_its_model) {
  gpu::Inventory inventory;
  inventory.gpus = {card(0, "NVIDIA H100 80GB HBM3"), card(1, "NVIDIA L4"),
                    card(0, "AMD Instinct MI300X", gpu::Vendor::amd)};
  std::vector<std::string> names;
  for (const Resource& one : default_resources(inventory)) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("berth.dev/gpu", "berth.dev/gpu.nvidia",
                                 "berth.dev/gpu.nvidia.h100", "berth.dev/gpu.nvidia.l4",
                                 "berth.dev/gpu.amd", "berth.dev/gpu.amd.mi300x"));
}

TEST(Resources, of_a_file_have_the_names_that_the_site_gives) {
  auto parsed = parse_resources(
      "[[resource]]\nname = \"org.qnib.gpu.nv/k80\"\nvendor = \"nvidia\"\n"
      "model = \"K*\"\n[[resource]]\nname = \"nvidia.com/gpu\"\nshares = 4\n",
      "node.toml");
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(*parsed, ElementsAre(Resource{"org.qnib.gpu.nv/k80", gpu::Vendor::nvidia, "k*", 1},
                                   Resource{"nvidia.com/gpu", std::nullopt, "", 4}));
}

TEST(Resources, a_fault_in_the_file_names_its_line) {
  EXPECT_THAT(error_of(""), HasSubstr("no [[resource]]"));
  EXPECT_THAT(error_of("[[resource]]\nname = \"gpu\"\n"), HasSubstr("node.toml:2: name: 'gpu'"));
  EXPECT_THAT(error_of("[[resource]]\nname = \"a.b/c\"\nsahres = 2\n"),
              HasSubstr("node.toml:3: unknown key"));
  EXPECT_THAT(error_of("[[resource]]\nvendor = \"nvidia\"\n"),
              HasSubstr("node.toml:2: a resource without a name"));
  EXPECT_THAT(error_of("[[resource]]\nname = \"a.b/c\"\nvendor = \"ati\"\n"),
              HasSubstr("node.toml:3: vendor"));
  EXPECT_THAT(error_of("[[resource]]\nname = \"a.b/c\"\nshares = 0\n"),
              HasSubstr("node.toml:3: shares"));
  EXPECT_THAT(error_of("[[resource]]\nname = \"a.b/c\"\n[[resource]]\nname = \"a.b/c\"\n"),
              HasSubstr("there twice"));
  EXPECT_THAT(error_of("[resource]\nname = \"a.b/c\"\n"), HasSubstr("unknown key 'resource.name'"));
}

TEST(Resources, only_names_that_kubernetes_takes) {
  EXPECT_TRUE(is_resource_name("nvidia.com/gpu"));
  EXPECT_TRUE(is_resource_name("berth.dev/gpu.nvidia.mig-1g.10gb"));
  for (const char* bad : {"gpu", "/gpu", "a/", "A.b/c", "a..b/c", "a.b/-c", "a.b/c.",
                          "kubernetes.io/gpu", "a b/c", "a/b/c"}) {
    EXPECT_FALSE(is_resource_name(bad)) << bad;
  }
}

TEST(Units, slices_stand_in_for_their_gpu_and_have_names_of_their_own) {
  gpu::Inventory inventory;
  inventory.gpus = {card(0, "NVIDIA H100 80GB HBM3"), card(1, "NVIDIA H100 80GB HBM3")};
  inventory.gpus[1].mig_mode = true;
  gpu::MigDevice slice;
  slice.uuid = "MIG-1";
  slice.profile = "1g.10gb";
  inventory.gpus[1].mig = {slice};
  EXPECT_EQ(units_of(inventory).size(), 2U);
  Resource all{"berth.dev/gpu", std::nullopt, "", 1};
  auto whole = units_of(all, inventory);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(device_id(whole[0], all, 0), "GPU-0");
  Resource mig{"berth.dev/mig", std::nullopt, "mig-1g.*", 2};
  auto slices = units_of(mig, inventory);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(device_id(slices[0], mig, 1), "MIG-1::1");
  EXPECT_EQ(unit_of("MIG-1::1"), "MIG-1");
}

}  // namespace
}  // namespace berth::kube
