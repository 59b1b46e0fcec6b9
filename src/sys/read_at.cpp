// SPDX-License-Identifier: Apache-2.0
#include "sys/read_at.hpp"

#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/text.hpp"

namespace berth::sys {

Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name) {
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) return std::string();
  std::string out(length, '\0');
  size_t filled = 0;
  while (filled < length) {
    ssize_t got = ::pread(fd.get(), out.data() + filled, length - filled,
                          static_cast<off_t>(offset + filled));
    if (got < 0) {
      int saved = errno;
      if (saved == EINTR) continue;
      return sys_error(saved, "read " + quoted(name));
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  out.resize(filled);
  return out;
}

}  // namespace berth::sys
