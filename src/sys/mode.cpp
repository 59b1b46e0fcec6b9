// SPDX-License-Identifier: Apache-2.0
#include "sys/mode.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name) {
  if (::fchmod(fd.get(), mode) != 0) return errno_now().error("chmod " + quoted(name));
  return {};
}

}  // namespace berth::sys
