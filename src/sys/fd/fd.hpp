// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/result.hpp"

namespace berth::sys {

/// Owns a file descriptor; empty (-1) when default-constructed or moved from.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// A handle of the working directory (AT_FDCWD), for the *at() calls.
const Fd& cwd();

/// Closes a written file and returns errors that only close() reports (a full quota, NFS). close(2)
Result<void> close_checked(Fd fd, const std::string& name);

/// A copy of `fd` that closes on exec. Errors: io. dup3(2), F_DUPFD_CLOEXEC
Result<Fd> duplicate(const Fd& fd);

/// Whether descriptor `number` was open when this program began. All descriptors that we open have
/// FD_CLOEXEC, which an inherited one lacks. fcntl(2) F_GETFD
bool is_inherited(int number);

/// Clears FD_CLOEXEC, so that a program started next inherits it. fcntl(2)
Result<void> set_inheritable(const Fd& fd);

struct Pipe {
  Fd read;
  Fd write;
};
/// Both ends close on exec. pipe2(2)
Result<Pipe> make_pipe();
/// Requests room for `bytes` in a pipe. The size stays as it is if the user has too many pages in
/// pipes already. pipe(7) F_SETPIPE_SZ
void widen_pipe(const Pipe& pipe, unsigned bytes);

}  // namespace berth::sys
