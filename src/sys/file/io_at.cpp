// SPDX-License-Identifier: Apache-2.0
#include "sys/file/io_at.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/text.hpp"

namespace berth::sys {

Result<size_t> read_at(const Fd& fd, uint64_t offset, char* buffer, size_t size,
                       const std::string& name) {
  while (true) {
    ssize_t got = ::pread(fd.get(), buffer, size, static_cast<off_t>(offset));
    int saved_errno = errno;
    if (got >= 0) return static_cast<size_t>(got);
    if (saved_errno != EINTR) return sys_error(saved_errno, "read " + quote(name));
  }
}

Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name) {
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) return std::string();
  std::string out(length, '\0');
  size_t filled = 0;
  while (filled < length) {
    size_t got = TRY(read_at(fd, offset + filled, out.data() + filled, length - filled, name));
    if (got == 0) break;
    filled += got;
  }
  out.resize(filled);
  return out;
}

Result<void> write_at(const Fd& fd, uint64_t offset, std::string_view bytes,
                      const std::string& name) {
  while (!bytes.empty()) {
    ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    int saved_errno = errno;
    if (put < 0 && saved_errno == EINTR) continue;
    if (put < 0) return sys_error(saved_errno, "write " + quote(name));
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Result<void> reserve(const Fd& fd, uint64_t size, const std::string& name) {
  // The limit also applies to overwriting, which fallocate does not check.
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
    return sys_error(EFBIG, "write " + quote(name));
  }
  while (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    int saved_errno = errno;
    if (saved_errno == ENOSPC || saved_errno == EDQUOT || saved_errno == EFBIG) {
      return sys_error(saved_errno, "write " + quote(name));
    }
    if (saved_errno != EINTR) break;
  }
  return {};
}

Result<void> truncate(const Fd& fd, uint64_t size, const std::string& name) {
  while (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    int saved_errno = errno;
    if (saved_errno != EINTR) return sys_error(saved_errno, "truncate " + quote(name));
  }
  return {};
}

}  // namespace berth::sys
