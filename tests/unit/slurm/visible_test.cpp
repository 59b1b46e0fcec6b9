// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "slurm/task_variables.hpp"

namespace berth::slurm {
namespace {

TEST(SlurmVisible, a_task_with_all_gpus_of_the_step_has_all_of_the_container) {
  EXPECT_EQ(of_task("4,5,6", "0,1,2", "4,5,6"), "0,1,2");
}

TEST(SlurmVisible, a_task_has_the_place_of_its_gpus_in_the_step) {
  EXPECT_EQ(of_task("4,5,6", "0,1,2", "5"), "1");
  EXPECT_EQ(of_task("6,2,4", "2,0,1", "4,6"), "1,2");
  EXPECT_EQ(of_task("GPU-a,GPU-b", "0,1", "GPU-b"), "1");
}

TEST(SlurmVisible, a_gpu_that_the_step_does_not_have_is_nothing) {
  EXPECT_EQ(of_task("4,5", "0,1", "7"), std::nullopt);
  EXPECT_EQ(of_task("4,5", "0", "5"), std::nullopt);
}

}  // namespace
}  // namespace berth::slurm
