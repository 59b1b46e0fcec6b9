// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/share.hpp"

#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

const MpsShare kShare{1000, {"GPU-a", "GPU-b"}, {25, uint64_t{3} << 30}};

TEST(NameOf, is_the_same_for_equal_shares_of_one_state_alone) {
  auto name = [](const MpsShare& share) { return name_of(share, "/run/berth", "/run/ledger"); };
  EXPECT_EQ(name(kShare), name(MpsShare(kShare)));
  EXPECT_TRUE(name(kShare).starts_with("1000-")) << name(kShare);
  MpsShare others[] = {kShare, kShare, kShare, kShare};
  others[0].user = 1001;
  others[1].gpus = {"GPU-a"};
  others[2].limits.cores_percent = 26;
  others[3].limits.memory_bytes.reset();
  for (const MpsShare& other : others) EXPECT_NE(name(kShare), name(other));
  EXPECT_NE(name(kShare), name_of(kShare, "/run/other", "/run/ledger"));
  EXPECT_NE(name(kShare), name_of(kShare, "/run/berth", "/run/other"));
}

TEST(CommandsOf, say_each_limit_once_for_each_gpu_that_it_is_of) {
  EXPECT_EQ(commands_of(kShare),
            (std::vector<std::string>{"set_default_active_thread_percentage 25",
                                      "set_default_device_pinned_mem_limit 0 3072M",
                                      "set_default_device_pinned_mem_limit 1 3072M"}));
  EXPECT_EQ(commands_of({0, {"GPU-a"}, {}}), std::vector<std::string>());
}

TEST(EnvironmentOf, says_the_same) {
  EXPECT_EQ(environment_of(kShare),
            (std::vector<std::string>{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
                                      "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3072M,1=3072M"}));
  EXPECT_EQ(environment_of({0, {"GPU-a"}, {}}), std::vector<std::string>());
}

TEST(SaysPercent, believes_a_number_alone) {
  EXPECT_TRUE(says_percent("25.0\n", 25));
  EXPECT_TRUE(says_percent("100.0\n25\n", 25));
  for (const char* other : {"100.0", "", "Invalid command"}) EXPECT_FALSE(says_percent(other, 25));
}

TEST(SaysBytes, knows_the_number_in_any_unit) {
  constexpr uint64_t kTwo = uint64_t{2} << 30;
  for (const char* same : {"2G", "2GB", "2048M\n", "0 2048MB", "2147483648", "2048"}) {
    EXPECT_TRUE(says_bytes(same, kTwo)) << same;
  }
  for (const char* other : {"", "Invalid command", "1G", "0", "none set"}) {
    EXPECT_FALSE(says_bytes(other, kTwo)) << other;
  }
}

TEST(PlaceOf, is_below_the_state_directory) {
  MpsPlace place = place_of("/run/berth", "0-12");
  EXPECT_EQ(place.root, "/run/berth/mps");
  EXPECT_EQ(place.pipes, "/run/berth/mps/0-12/pipes");
}

}  // namespace
}  // namespace berth::gpu
