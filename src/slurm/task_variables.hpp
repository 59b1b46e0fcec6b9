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

/// The variables for PyTorch's "env://" (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT),
/// which describe the rank of a task in its step. Computed from the task's Slurm variables; leaves
/// out a variable if its source is missing. `first_node`: of the step, or "". The port is 61000 +
/// job % 4536, as with enroot, so that two jobs on a node rarely collide. Pure.
/// Source: https://docs.pytorch.org/docs/stable/distributed.html, "Environment variable
/// initialization".
std::vector<std::pair<std::string, std::string>> torch_variables(
    const std::function<std::optional<std::string>(const std::string& name)>& variable,
    const std::string& first_node);

// Selects the GPUs of a task from those of its step. Pure.

/// The variables that select GPUs, which Slurm may set per task.
inline constexpr std::array<const char*, 5> kVisible = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK"};

/// The value of such a variable for one task in the container of its step. `container`, the value
/// in the container, lists all GPUs of the step in the order of `step` ("0,1,2" for "4,5,6"); the
/// result keeps only those in `task` ("5" → "1"). Nothing if `task` names a GPU that is not in
/// `step`.
std::optional<std::string> of_task(std::string_view step, std::string_view container,
                                   std::string_view task);

}  // namespace berth::slurm
