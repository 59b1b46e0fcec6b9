// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.hpp"

namespace berth::sys {

/// The host name in the UTS namespace of this process. uname(2)
Result<std::string> host_name();

/// The release of the kernel: "6.1.0-18-amd64". uname(2)
Result<std::string> kernel_release();

/// Time since boot; unlike std::chrono::steady_clock it includes the time in suspend.
/// clock_gettime(2) CLOCK_BOOTTIME
std::chrono::nanoseconds since_boot();

}  // namespace berth::sys
