// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

void Fd::reset() {
  // EINTR is not retried: Linux has released the number by then.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

const Fd& cwd() {
  // Never closed, because Fd::reset() ignores negative values.
  static const Fd handle(AT_FDCWD);
  return handle;
}

Result<void> close_checked(Fd fd, const std::string& name) {
  if (::close(fd.release()) != 0 && errno != EINTR) {
    return errno_now().error("write " + quote(name));
  }
  return {};
}

Result<Fd> duplicate(const Fd& fd) {
  int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return errno_now().error("duplicate file descriptor " + std::to_string(fd.get()));
  return Fd(copy);
}

bool is_inherited(int number) {
  int flags = ::fcntl(number, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

Result<void> set_inheritable(const Fd& fd) {
  if (::fcntl(fd.get(), F_SETFD, 0) != 0) {
    return errno_now().error("pass on file descriptor " + std::to_string(fd.get()));
  }
  return {};
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_now().error("make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void widen_pipe(const Pipe& pipe, unsigned bytes) {
  ::fcntl(pipe.write.get(), F_SETPIPE_SZ, bytes);
}

}  // namespace berth::sys
