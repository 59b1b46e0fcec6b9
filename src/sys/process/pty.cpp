// SPDX-License-Identifier: Apache-2.0
#include "sys/process/pty.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace berth::sys {

Result<Fd> open_terminal(const Fd& master) {
  int unlocked = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) {
    return errno_now().error("unlock the terminal");
  }
  int fd = ::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno_now().error("open the terminal");
  return Fd(fd);
}

Result<void> become_terminal(const Fd& terminal) {
  if (::ioctl(terminal.get(), TIOCSCTTY, 0) != 0) return errno_now().error("take the terminal");
  for (int fd = 0; fd <= 2; ++fd) {
    if (::dup2(terminal.get(), fd) < 0) return errno_now().error("take the terminal");
  }
  return {};
}

Result<void> new_session() {
  if (::setsid() < 0 && errno != EPERM) return errno_now().error("start a session");
  return {};
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

Result<WindowSize> window_size(const Fd& terminal) {
  winsize size{};
  if (::ioctl(terminal.get(), TIOCGWINSZ, &size) != 0) {
    return errno_now().error("read the terminal's size");
  }
  return WindowSize{size.ws_row, size.ws_col};
}

Result<void> set_window_size(const Fd& terminal, WindowSize wanted) {
  winsize size{wanted.rows, wanted.columns, 0, 0};
  if (::ioctl(terminal.get(), TIOCSWINSZ, &size) != 0) {
    return errno_now().error("set the terminal's size");
  }
  return {};
}

RawMode::RawMode(RawMode&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

RawMode& RawMode::operator=(RawMode&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(before_, other.before_);
  return *this;
}

RawMode::~RawMode() {
  if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

Result<RawMode> RawMode::enter(int fd) {
  RawMode mode;
  if (::tcgetattr(fd, &mode.before_) != 0) return errno_now().error("read the terminal's mode");
  termios raw = mode.before_;
  ::cfmakeraw(&raw);
  if (::tcsetattr(fd, TCSADRAIN, &raw) != 0) return errno_now().error("set the terminal's mode");
  mode.fd_ = fd;
  return mode;
}

}  // namespace berth::sys
