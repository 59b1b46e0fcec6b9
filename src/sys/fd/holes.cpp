// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/holes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<std::vector<Stretch>> data_stretches(const Fd& fd, uint64_t size, const std::string& name) {
  std::vector<Stretch> stretches;
  off_t before = ::lseek(fd.get(), 0, SEEK_CUR);
  for (uint64_t at = 0; at < size;) {
    off_t data = ::lseek(fd.get(), static_cast<off_t>(at), SEEK_DATA);
    int saved = errno;
    if (data < 0 && saved == ENXIO) break;  // the rest is one hole
    if (data < 0 && saved == EINVAL) {
      stretches = {{0, size}};
      break;
    }
    if (data < 0) return sys_error(saved, "look for holes of " + quote(name));
    off_t hole = ::lseek(fd.get(), data, SEEK_HOLE);
    if (hole < 0) return errno_now().error("look for holes of " + quote(name));
    uint64_t end = std::min(static_cast<uint64_t>(hole), size);
    if (static_cast<uint64_t>(data) >= end) break;
    stretches.push_back({static_cast<uint64_t>(data), end - static_cast<uint64_t>(data)});
    at = end;
  }
  if (::lseek(fd.get(), before, SEEK_SET) < 0) {
    return errno_now().error("read " + quote(name));
  }
  return stretches;
}

}  // namespace berth::sys
