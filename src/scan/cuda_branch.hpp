// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::scan {

/// The version of CUDA that was released with the branch of an NVIDIA driver: "570.133.20" →
/// "12.8". Empty for an unknown branch.
/// Source: CUDA Toolkit release notes, "CUDA Toolkit and Corresponding Driver Versions".
std::string cuda_of_branch(std::string_view driver_version);

}  // namespace berth::scan
