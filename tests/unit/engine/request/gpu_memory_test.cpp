// SPDX-License-Identifier: Apache-2.0
#include "engine/request/gpu_memory.hpp"

#include <gtest/gtest.h>

#include "unit/gpu/grant/machine.hpp"

namespace berth::engine {
namespace {

TEST(ParseGpuMemory, takes_the_most_and_what_is_kept) {
  EXPECT_EQ(parse_gpu_memory("10g").value(), (GpuMemory{10 * gpu::kGib, std::nullopt}));
  EXPECT_EQ(parse_gpu_memory("10G,8G").value(), (GpuMemory{10 * gpu::kGib, 8 * gpu::kGib}));
  for (const char* wrong : {"", "0", "-1", "10g,", ",8g", "8g,10g", "1g,1g,1g", "50%", "x"}) {
    EXPECT_FALSE(parse_gpu_memory(wrong).ok()) << wrong;
  }
}

TEST(ParseMemoryRegions, skips_what_makes_no_sense) {
  MemoryRegions regions = parse_memory_regions(
      "drm/0000:03:00.0/vram0 17163091968\n\n 5\nnvidia/0000:1b:00.0/vidmem \nname max\nlast 7");
  EXPECT_EQ(regions, (MemoryRegions{{"drm/0000:03:00.0/vram0", 17163091968}, {"last", 7}}));
}

TEST(LimitGpuMemory, writes_a_line_for_each_gpu_of_either_vendor) {
  gpu::Inventory machine = gpu::gpu_machine(2);
  MemoryRegions regions = {{"nvidia/0000:10:00.0/vidmem", 80 * gpu::kGib},
                           {"drm/0000:11:00.0/vram0", 80 * gpu::kGib},
                           {"drm/0000:11:00.0/stolen", gpu::kGib}};
  auto files = limit_gpu_memory({gpu::kGib, std::nullopt}, gpu::whole_gpus(machine), regions);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(*files, (std::map<std::string, std::string>{{"dmem.max",
                                                         "nvidia/0000:10:00.0/vidmem 1073741824\n"
                                                         "drm/0000:11:00.0/vram0 1073741824\n"}}));
  files = limit_gpu_memory({gpu::kGib, 7}, {{machine.gpus.data()}}, regions);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->at("dmem.min"), "nvidia/0000:10:00.0/vidmem 7\n");
}

TEST(LimitGpuMemory, is_refused_where_nothing_can_enforce_it) {
  gpu::Inventory machine = gpu::gpu_machine(2);
  auto refused = limit_gpu_memory({gpu::kGib, {}}, gpu::whole_gpus(machine),
                                  {{"nvidia/0000:10:00.0/vidmem", 80 * gpu::kGib}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::unsupported);
  EXPECT_EQ(
      refused.error().what,
      "--gpu-memory: nothing on this machine can limit the memory of GPU 1: the kernel's dmem "
      "controller does not list it");
  gpu::Inventory sliced = gpu::sliced_machine(1);
  EXPECT_FALSE(
      limit_gpu_memory({gpu::kGib, {}}, {{&sliced.gpus[1], sliced.gpus[1].mig.data()}}, {}).ok());
}

TEST(LimitGpuMemory, of_no_gpu_or_more_than_there_is_makes_no_sense) {
  gpu::Inventory machine = gpu::gpu_machine(1);
  EXPECT_FALSE(limit_gpu_memory({gpu::kGib, {}}, {}, {}).ok());
  auto refused =
      limit_gpu_memory({gpu::kGib, {}}, gpu::whole_gpus(machine), {{"drm/0000:10:00.0/vram0", 5}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what, "--gpu-memory: GPU 0 has 5 bytes");
}

}  // namespace
}  // namespace berth::engine
