// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/kernel.hpp"

#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

TEST(Procfs, labels_end_at_the_first_colon) {
  auto labels = parse_labels("Model: \t\t NVIDIA H100\nBus Location: \t 0000:1b:00.0\nno label\n");
  EXPECT_EQ(labels["Model"], "NVIDIA H100");
  EXPECT_EQ(labels["Bus Location"], "0000:1b:00.0");
  EXPECT_EQ(labels.size(), 2U);
}

TEST(Procfs, majors_are_those_of_character_devices) {
  auto majors = parse_majors(
      "Character devices:\n195 nvidia\n507 nvidia-uvm\n\nBlock devices:\n  8 nvidia-caps\n");
  EXPECT_EQ(majors["nvidia"], 195U);
  EXPECT_EQ(majors["nvidia-uvm"], 507U);
  EXPECT_FALSE(majors.contains("nvidia-caps"));
}

TEST(Procfs, both_flavours_of_the_module_tell_their_version) {
  EXPECT_EQ(parse_module_version(
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 23\nGCC"),
            "570.133.20");
  EXPECT_EQ(parse_module_version(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
                "Build  (dvs-builder@U22)"),
            "580.65.06");
  EXPECT_EQ(parse_module_version("something else 1.2.3"), "");
  EXPECT_EQ(parse_module_version(""), "");
}

}  // namespace
}  // namespace berth::gpu
