// SPDX-License-Identifier: Apache-2.0
#include "sys/stream.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<size_t> read_some(const Fd& fd, std::span<char> buffer, const std::string& name) {
  ssize_t count;
  do {
    count = ::read(fd.get(), buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return static_cast<size_t>(count);
  int saved = errno;
  if (saved == EIO && ::isatty(fd.get())) return size_t{0};
  Error error = sys_error(saved, "read " + quoted(name));
  if (saved == EAGAIN) error.kind = Kind::busy;
  return error;
}

Result<void> set_nonblocking(const Fd& fd) {
  int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return errno_now().error("make a descriptor non-blocking");
  }
  return {};
}

}  // namespace berth::sys
