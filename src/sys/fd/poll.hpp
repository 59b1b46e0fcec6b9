// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// Waits until one of `entries` is ready, and fills their revents; ignores entries with fd -1.
/// Returns the number of ready ones, 0 at the deadline. poll(2)
Result<int> poll(std::vector<pollfd>& entries, std::optional<std::chrono::milliseconds> deadline);

}  // namespace berth::sys
