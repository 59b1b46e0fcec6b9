// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/program_version.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ProgramVersion, is_a_word_of_a_branch_and_one_or_two_numbers) {
  EXPECT_THAT(driver_versions_in(std::string("\0NVIDIA-SMI 550.163.01\0x 390.157.", 33)),
              ElementsAre("550.163.01"));
  EXPECT_THAT(driver_versions_in("390.157"), ElementsAre("390.157"));
  EXPECT_THAT(driver_versions_in("(470.256.02) 470.256.02 535.261.03"),
              ElementsAre("470.256.02", "535.261.03"));
}

TEST(ProgramVersion, is_no_other_number) {
  for (const char* text : {"", ".", "100.0", "1550.163", "550.163.01.2.3.4", "a550.163", "550.163a",
                           "12.44", "550..163", "550.1x"}) {
    EXPECT_THAT(driver_versions_in(text), IsEmpty()) << text;
  }
}

TEST(ProgramVersion, of_very_many_are_not_all_kept) {
  std::string text;
  for (int i = 100; i < 1000; ++i) text += std::to_string(i) + ".11 ";
  EXPECT_LE(driver_versions_in(text).size(), 64U);
}

}  // namespace
}  // namespace berth::gpu
