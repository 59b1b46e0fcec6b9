// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Want = Request::Want;

// The table of nvidia.md 3.2.
TEST(VisibleDevices, keywords_count_when_they_are_the_whole_value) {
  EXPECT_EQ(parse_visible_devices("").want, Want::none);
  EXPECT_EQ(parse_visible_devices("void").want, Want::none);
  EXPECT_EQ(parse_visible_devices("none").want, Want::driver_files);
  EXPECT_EQ(parse_visible_devices("all").want, Want::all);
  EXPECT_EQ(parse_visible_devices(" all ").want, Want::all);
  auto mixed = parse_visible_devices("0,all");
  EXPECT_EQ(mixed.want, Want::devices);
  EXPECT_THAT(mixed.devices, ElementsAre("0", "all"));  // which no GPU is called
}

TEST(VisibleDevices, a_list_names_each_device_once) {
  EXPECT_THAT(parse_visible_devices("0,2,0").devices, ElementsAre("0", "2"));
  EXPECT_THAT(parse_visible_devices("GPU-8f2b, MIG-11,,0:1").devices,
              ElementsAre("GPU-8f2b", "MIG-11", "0:1"));
  EXPECT_THAT(parse_visible_devices("MIG-GPU-8f2b/7/0").devices, ElementsAre("MIG-GPU-8f2b/7/0"));
  EXPECT_EQ(parse_visible_devices(",,").want, Want::none);
}

TEST(VisibleDevices, qualified_names_are_cdis) {
  auto names = parse_visible_devices("nvidia.com/gpu=0,nvidia.com/gpu=all");
  EXPECT_EQ(names.want, Want::none);
  EXPECT_THAT(names.cdi_names, ElementsAre("nvidia.com/gpu=0", "nvidia.com/gpu=all"));
  auto both = parse_visible_devices("nvidia.com/gpu=0,1");
  EXPECT_THAT(both.cdi_names, ElementsAre("nvidia.com/gpu=0"));
  EXPECT_THAT(both.devices, ElementsAre("1"));
}

TEST(VisibleDevices, a_generators_prefix_is_taken_off) {
  EXPECT_THAT(parse_visible_devices("runtime.nvidia.com/gpu=1").devices, ElementsAre("1"));
  auto all = parse_visible_devices("runtime.nvidia.com/gpu=all");
  EXPECT_EQ(all.want, Want::all);
  EXPECT_THAT(all.cdi_names, IsEmpty());
}

TEST(VisibleDevices, what_is_a_qualified_name) {
  EXPECT_TRUE(is_qualified_name("nvidia.com/gpu=0"));
  for (const char* text : {"", "0", "nvidia.com/gpu", "/gpu=0", "nvidia.com/=0",
                           "nvidia.com/gpu=", "a=b/c", "nvidia.com/gpu=0 1", "a/b=c,d"}) {
    EXPECT_FALSE(is_qualified_name(text)) << text;
  }
}

TEST(LegacyImage, is_one_with_a_version_and_no_requirement) {
  Variables old({"CUDA_VERSION=8.0.61"}, {});
  EXPECT_TRUE(is_legacy_image(old));
  EXPECT_EQ(legacy_requirement(old), "cuda>=8.0");
  EXPECT_FALSE(
      is_legacy_image(Variables({"CUDA_VERSION=8.0", "NVIDIA_REQUIRE_CUDA=cuda>=8.0"}, {})));
  EXPECT_FALSE(is_legacy_image(Variables({}, {})));
  EXPECT_EQ(legacy_requirement(Variables({"CUDA_VERSION=eight"}, {})), std::nullopt);
  EXPECT_EQ(legacy_requirement(Variables({"CUDA_VERSION=8"}, {})), std::nullopt);
}

TEST(Capabilities, unknown_words_are_told_apart) {
  auto words = parse_capabilities("compute, utility,,computing,all,compute");
  EXPECT_THAT(words.known, ElementsAre("compute", "utility", "all"));
  EXPECT_THAT(words.unknown, ElementsAre("computing"));
}

TEST(ImexChannels, are_numbers_below_a_million_or_so) {
  auto words = parse_imex_channels("0,7,7,all,1048576,-1,1048575");
  EXPECT_THAT(words.channels, ElementsAre(0U, 7U, 1048575U));
  EXPECT_THAT(words.refused, ElementsAre("all", "1048576", "-1"));
}

TEST(VolumeDevices, every_form_is_read) {
  auto wish = parse_volume_devices(
      {"0", "GPU-8f2b", "MIG-GPU-8f2b/7/0", "cdi/nvidia.com/gpu/1", "imex/3", "", "cdi/x", "0,1"});
  EXPECT_EQ(wish.devices.want, Want::devices);
  EXPECT_THAT(wish.devices.devices, ElementsAre("0", "GPU-8f2b", "MIG-GPU-8f2b/7/0", "cdi/x"));
  EXPECT_THAT(wish.devices.cdi_names, ElementsAre("nvidia.com/gpu=1"));
  EXPECT_THAT(wish.imex.channels, ElementsAre(3U));
  EXPECT_EQ(parse_volume_devices({"all"}).devices.want, Want::all);
  EXPECT_EQ(parse_volume_devices({}).devices.want, Want::none);
}

TEST(Truth, is_gos) {
  for (const char* yes : {"1", "t", "T", "true", "TRUE", "True"}) EXPECT_TRUE(is_true(yes)) << yes;
  for (const char* no : {"", "0", "yes", "tRUE", "false"}) EXPECT_FALSE(is_true(no)) << no;
}

TEST(Variables, the_later_and_the_upper_win) {
  Variables variables({"A=1", "B=1", "A=2", "=x", "C"}, {"B=3", "D="});
  EXPECT_EQ(variables.get("A"), "2");
  EXPECT_EQ(variables.get("B"), "3");
  EXPECT_EQ(variables.get("C"), std::nullopt);
  EXPECT_EQ(variables.get("D"), "");
}

}  // namespace
}  // namespace berth::gpu
