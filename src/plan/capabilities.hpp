// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::plan {

/// The number of "CAP_CHOWN" in linux/capability.h; nothing for a name that does not exist.
std::optional<int> capability_number(std::string_view name);

/// "CAP_CHOWN,CAP_KILL" for a set with bit n for capability n.
std::string capability_names(uint64_t set);

}  // namespace berth::plan
