// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/host_name.hpp"

#include <sys/utsname.h>

#include <cerrno>

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

}  // namespace berth::sys
