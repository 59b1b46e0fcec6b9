// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/probe/files.hpp"
#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using testing::inventory_of;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const ProcText* find_text(const Inventory& inventory, const std::string& path) {
  for (const ProcText& text : inventory.proc_texts) {
    if (text.path == path) return &text;
  }
  return nullptr;
}

TEST(ProcTexts, those_of_a_gpu_carry_its_index) {
  Inventory inventory = inventory_of(DriverTree("eight"));
  const ProcText* text = find_text(inventory, "nvidia/gpus/0000:52:00.0/information");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(text->gpu, 2U);
  EXPECT_THAT(text->text, StartsWith("Model: \t NVIDIA H100"));
  ASSERT_NE(find_text(inventory, "nvidia/gpus/0000:52:00.0/power"), nullptr);
  ASSERT_NE(find_text(inventory, "nvidia/gpus/0000:52:00.0/numa_status"), nullptr);
}

TEST(ProcTexts, those_of_the_driver_carry_none) {
  Inventory inventory = inventory_of(DriverTree("one"));
  for (const char* path :
       {"nvidia/version", "nvidia/params", "nvidia/registry", "nvidia/suspend",
        "nvidia/warnings/README", "nvidia/patches/README", "nvidia/capabilities/mig/config",
        "nvidia/capabilities/mig/monitor", "nvidia/capabilities/fabric-imex-mgmt",
        "nvidia-caps/nvlink-minors", "nvidia-caps/mig-minors"}) {
    const ProcText* text = find_text(inventory, path);
    ASSERT_NE(text, nullptr) << path;
    EXPECT_FALSE(text->gpu.has_value()) << path;
    EXPECT_FALSE(text->text.empty()) << path;
  }
}

TEST(ProcTexts, those_of_a_slice_carry_both) {
  Inventory inventory = inventory_of(DriverTree("mig"));
  const ProcText* text = find_text(inventory, "nvidia/capabilities/gpu0/mig/gi9/ci0/access");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(text->gpu, 0U);
  EXPECT_EQ(text->slice, 2U);
  std::vector<std::string> rows;
  for (const ProcText& part : inventory.proc_texts) {
    if (part.path == "nvidia-caps/mig-minors" && part.slice == 2U) rows.push_back(part.text);
  }
  // 3 + instance · 9, and one more for its first compute instance.
  EXPECT_EQ(rows, (std::vector<std::string>{"gpu0/gi9/access 84\n", "gpu0/gi9/ci0/access 85\n"}));
}

TEST(ProcTexts, an_amd_machine_has_none) {
  EXPECT_THAT(inventory_of(DriverTree("amd")).proc_texts, IsEmpty());
}

TEST(MigMinors, other_rows_and_other_instances_are_left_out) {
  Inventory inventory = inventory_of(DriverTree("mig"));
  EXPECT_THAT(mig_minor_rows("gpu1/gi7/access 201\ngpu0/gi5/access 48\n", inventory), IsEmpty());
  for (const char* damaged :
       {"gpu0/gi7/access", "gpu0/gi7/access x", "gpu0/gi7 66", "gpu0/gi/access 66", "/access 3",
        "gpu0/gi7/ci/access 67", "gpu0/gi7/ci0/ci0/access 67", "gpu99999999999/gi7/access 66",
        "gpu0/gi7/access 66 67"}) {
    EXPECT_THAT(mig_minor_rows(damaged, inventory), IsEmpty()) << damaged;
  }
  EXPECT_EQ(mig_minor_rows("config 1\nmonitor 2\n", inventory).size(), 2U);
}

}  // namespace
}  // namespace berth::gpu
