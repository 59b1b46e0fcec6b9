// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "slurm/task_variables.hpp"

namespace berth::slurm {
namespace {

using Variables = std::map<std::string, std::string>;

Variables torch_of(const Variables& task, const std::string& first_node) {
  auto found = torch_variables(
      [&](const std::string& name) {
        auto at = task.find(name);
        return at == task.end() ? std::nullopt : std::optional<std::string>(at->second);
      },
      first_node);
  return {found.begin(), found.end()};
}

TEST(SlurmTorch, a_task_is_told_its_place_among_all) {
  Variables task = {{"SLURM_PROCID", "5"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_NTASKS", "8"},
                    {"SLURM_JOB_ID", "4540"}};
  EXPECT_EQ(torch_of(task, "n7"), (Variables{{"RANK", "5"},
                                             {"LOCAL_RANK", "1"},
                                             {"WORLD_SIZE", "8"},
                                             {"MASTER_ADDR", "n7"},
                                             {"MASTER_PORT", "61004"}}));
}

TEST(SlurmTorch, what_slurm_does_not_say_is_left_out) {
  EXPECT_EQ(torch_of({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "no"}}, ""),
            (Variables{{"RANK", "0"}}));
}

}  // namespace
}  // namespace berth::slurm
