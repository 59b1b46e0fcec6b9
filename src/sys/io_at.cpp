// SPDX-License-Identifier: Apache-2.0
#include "sys/io_at.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<size_t> read_at(const Fd& fd, uint64_t offset, char* buffer, size_t size,
                       const std::string& name) {
  while (true) {
    ssize_t got = ::pread(fd.get(), buffer, size, static_cast<off_t>(offset));
    int saved_errno = errno;
    if (got >= 0) return static_cast<size_t>(got);
    if (saved_errno != EINTR) return sys_error(saved_errno, "read " + quoted(name));
  }
}

Result<void> write_at(const Fd& fd, uint64_t offset, std::string_view bytes,
                      const std::string& name) {
  while (!bytes.empty()) {
    ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    int saved_errno = errno;
    if (put < 0 && saved_errno == EINTR) continue;
    if (put < 0) return sys_error(saved_errno, "write " + quoted(name));
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Result<void> truncate(const Fd& fd, uint64_t size, const std::string& name) {
  while (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    int saved_errno = errno;
    if (saved_errno != EINTR) return sys_error(saved_errno, "truncate " + quoted(name));
  }
  return {};
}

}  // namespace berth::sys
