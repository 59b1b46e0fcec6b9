// SPDX-License-Identifier: Apache-2.0
// CPUID flags by NFD's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::bake {

/// Linux's name of a flag: "AVX512VNNI" → "avx512_vnni". Nothing: no flag of NFD, or one that
/// /proc/cpuinfo does not show.
std::optional<std::string> feature_of_flag(std::string_view flag);

/// 1 … 4 for "X86_64_V1" … "X86_64_V4"; 0 for others.
uint32_t level_of_flag(std::string_view flag);

/// All flags known to either function.
std::vector<std::string_view> flag_names();

}  // namespace berth::bake
