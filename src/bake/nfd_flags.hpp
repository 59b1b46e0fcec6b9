// SPDX-License-Identifier: Apache-2.0
// CPUID flags as NFD names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::bake {

/// What Linux calls it: "AVX512VNNI" → "avx512_vnni". Nothing: no flag of NFD, or one that
/// /proc/cpuinfo does not show.
std::optional<std::string> feature_of_flag(std::string_view flag);

/// 1 … 4 of "X86_64_V1" … "X86_64_V4"; 0 for another.
uint32_t level_of_flag(std::string_view flag);

/// All that either of them knows.
std::vector<std::string_view> flag_names();

}  // namespace berth::bake
