// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// The GPUs of a task among those of its step. Pure.
namespace berth::slurm {

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
