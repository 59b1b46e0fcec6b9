// SPDX-License-Identifier: Apache-2.0
#include "sys/process/stream.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {

Result<size_t> read_some(const Fd& fd, std::span<char> buffer, const std::string& name) {
  ssize_t count;
  do {
    count = ::read(fd.get(), buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return static_cast<size_t>(count);
  int saved = errno;
  if (saved == EIO && ::isatty(fd.get())) return size_t{0};
  return sys_error(saved, "read " + quote(name));  // EAGAIN is Kind::busy
}

Result<size_t> write_some(const Fd& fd, std::string_view bytes, const std::string& name) {
  ssize_t count;
  do {
    count = ::write(fd.get(), bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return static_cast<size_t>(count);
  return errno_now().error("write " + quote(name));  // EAGAIN is Kind::busy
}

Result<void> write_both(const Fd& fd, std::string_view first, std::string_view second,
                        const std::string& name) {
  iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                   {const_cast<char*>(second.data()), second.size()}};
  ssize_t count;
  do {
    count = ::writev(fd.get(), parts, 2);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno_now().error("write " + quote(name));
  auto done = static_cast<size_t>(count);
  TRY(write_all(fd, first.substr(std::min(done, first.size())), name));
  return write_all(fd, second.substr(done - std::min(done, first.size())), name);
}

Result<void> copy_rest(const Fd& from, const Fd& to, const std::string& name) {
  constexpr size_t kStep = size_t{1} << 30;
  while (true) {
    ssize_t count = ::copy_file_range(from.get(), nullptr, to.get(), nullptr, kStep, 0);
    if (count == 0) return {};
    int saved = errno;
    if (count > 0 || saved == EINTR) continue;
    // The files are on two file systems, or on one without support. The rest is copied by read and
    // write.
    if (saved == EXDEV || saved == EINVAL || saved == EOPNOTSUPP) break;
    return sys_error(saved, "write " + quote(name));
  }
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    size_t count = TRY(read_some(from, buffer, name));
    if (count == 0) return {};
    TRY(write_all(to, {buffer.data(), count}, name));
  }
}

Result<void> set_nonblocking(const Fd& fd) {
  int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return errno_now().error("make a descriptor non-blocking");
  }
  return {};
}

}  // namespace berth::sys
