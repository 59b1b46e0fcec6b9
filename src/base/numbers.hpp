// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace berth {

/// Numbers of processors or of NUMA nodes.
using Numbers = std::set<unsigned>;

/// "0-2,7", the kernel's notation. Nothing if the string is not such a list, or lists more than
/// 65536 numbers.
std::optional<Numbers> parse_numbers(std::string_view text);

/// "0-2,7".
std::string to_text(const Numbers& numbers);

}  // namespace berth
