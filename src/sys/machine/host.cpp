// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/host.hpp"

#include <sys/utsname.h>

#include <cerrno>
#include <ctime>

namespace berth::sys {

Result<std::string> host_name() {
  struct utsname names {};
  if (::uname(&names) != 0) return errno_now().error("read the host's name");
  return std::string(names.nodename);
}

Result<std::string> kernel_release() {
  struct utsname names {};
  if (::uname(&names) != 0) return errno_now().error("read the kernel's version");
  return std::string(names.release);
}

std::chrono::nanoseconds since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);  // cannot fail
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace berth::sys
