// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/boot_clock.hpp"

#include <ctime>

namespace berth::sys {

std::chrono::nanoseconds since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);  // it cannot fail
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace berth::sys
