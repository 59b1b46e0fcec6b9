// SPDX-License-Identifier: Apache-2.0
#include "sys/file/exchange.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "base/text.hpp"

namespace berth::sys {

Result<void> rename_exchange(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                             const std::string& to) {
  if (::renameat2(from_dir.get(), from.c_str(), to_dir.get(), to.c_str(), RENAME_EXCHANGE) != 0) {
    int saved = errno;
    Error error = sys_error(saved, "exchange " + quote(from) + " with " + quote(to));
    if (saved == EINVAL || saved == ENOSYS) error.kind = Kind::unsupported;
    return error;
  }
  return {};
}

}  // namespace berth::sys
