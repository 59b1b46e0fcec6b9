// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace berth::sys {

/// Time since boot, including suspend, unlike std::chrono::steady_clock. clock_gettime(2)
/// CLOCK_BOOTTIME
std::chrono::nanoseconds since_boot();

}  // namespace berth::sys
