// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::slurm {

/// The rank of a task among all of a step for PyTorch's "env://" (RANK, LOCAL_RANK, WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT), from the task's Slurm variables; missing ones are left out.
/// `first_node` is that of the step, or "". The port is enroot's, 61000 + job % 4536, so that two
/// jobs on a node rarely collide. Pure.
/// Source: https://docs.pytorch.org/docs/stable/distributed.html, "Environment variable
/// initialization".
std::vector<std::pair<std::string, std::string>> torch_variables(
    const std::function<std::optional<std::string>(const std::string& name)>& variable,
    const std::string& first_node);

// The GPUs of a task among those of its step. Pure.

/// The variables that select GPUs, which Slurm may set per task.
inline constexpr std::array<const char*, 5> kVisible = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK"};

/// The value of such a variable for one task in the container of its step: the container's value,
/// with all GPUs of the step in the step's order ("4,5,6" became "0,1,2"), reduced to the task's
/// ("5" → "1"). Nothing if the task's value names a GPU that is not the step's.
std::optional<std::string> of_task(std::string_view step, std::string_view container,
                                   std::string_view task);

}  // namespace berth::slurm
