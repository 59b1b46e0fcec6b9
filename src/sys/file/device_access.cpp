// SPDX-License-Identifier: Apache-2.0
#include "sys/file/device_access.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace berth::sys {

bool is_denied_by_cgroup(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0 && errno == EPERM;
}

}  // namespace berth::sys
