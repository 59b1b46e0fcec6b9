// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// Which GPUs of a step are a task's. Pure.
namespace berth::slurm {

/// What tells programs their GPUs, where Slurm may tell each task something else.
inline constexpr std::array<const char*, 5> kVisible = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK"};

/// The value of such a variable for one task in the container of its step: that of the container,
/// which has all GPUs of the step in the step's order ("4,5,6" became "0,1,2"), cut down to the
/// task's ("5" → "1"). Nothing where the task's names a GPU that the step's does not.
std::optional<std::string> of_task(std::string_view step, std::string_view container,
                                   std::string_view task);

}  // namespace berth::slurm
