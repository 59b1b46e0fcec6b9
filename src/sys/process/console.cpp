// SPDX-License-Identifier: Apache-2.0
#include "sys/process/console.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <optional>

#include "sys/fd/fd.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

constexpr size_t kLongestLine = 64 * 1024;
constexpr char kCtrlC = 3;

/// Turns echo off, and blocks the signals that would end the program while it is off: they arrive
/// after the destructor has restored the echo.
class EchoOff {
 public:
  explicit EchoOff(int fd) : fd_(fd) {
    sigset_t ending;
    sigemptyset(&ending);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&ending, number);
    pthread_sigmask(SIG_BLOCK, &ending, &signals_);
    known_ = tcgetattr(fd_, &settings_) == 0;
    if (!known_) return;
    termios silent = settings_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    silent.c_lflag |= ECHONL;
    silent.c_cc[VEOL] = kCtrlC;  // so that Ctrl-C ends the read
    tcsetattr(fd_, TCSAFLUSH, &silent);
  }
  EchoOff(EchoOff&&) = delete;
  ~EchoOff() {
    if (known_) tcsetattr(fd_, TCSAFLUSH, &settings_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }

 private:
  int fd_;
  bool known_ = false;
  termios settings_{};
  sigset_t signals_{};
};

/// Reads a line. While the echo is off the terminal sends no signals: Ctrl-C is a byte.
Result<std::string> read_line(const Fd& terminal) {
  std::string line;
  char byte = 0;
  while (line.size() < kLongestLine) {
    ssize_t count = ::read(terminal.get(), &byte, 1);
    int saved = errno;
    if (count < 0 && saved == EINTR) continue;
    if (count < 0) return sys_error(saved, "read '/dev/tty'");
    if (count == 0) return make_error(Kind::interrupted, "read '/dev/tty': end of input");
    if (byte == kCtrlC) {
      ignore(write_all(terminal, "\n", "/dev/tty"));  // ends the line of the prompt
      return make_error(Kind::interrupted, "read '/dev/tty': Ctrl-C");
    }
    if (byte == '\n') return line;
    line += byte;
  }
  return make_error(Kind::usage, "read '/dev/tty': the line is too long");
}

}  // namespace

Result<std::string> ask(std::string_view prompt, Echo echo) {
  Fd terminal = TRY(open_at(cwd(), "/dev/tty", O_RDWR | O_NOCTTY));
  // Done before the prompt is shown, because input that is typed after it must not be echoed.
  std::optional<EchoOff> silence;
  if (echo == Echo::off) silence.emplace(terminal.get());
  TRY(write_all(terminal, prompt, "/dev/tty"));
  return read_line(terminal);
}

Result<void> write_stream(int fd, std::string_view text) {
  constexpr std::array<const char*, 3> kNames = {"standard input", "standard output",
                                                 "standard error"};
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    int saved = errno;
    if (count < 0 && saved == EINTR) continue;
    if (count < 0) {
      return sys_error(saved, std::string("write to ") + kNames.at(static_cast<size_t>(fd)));
    }
    text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<std::string> working_directory() {
  std::array<char, PATH_MAX> path;
  const char* found = ::getcwd(path.data(), path.size());
  int saved = errno;
  if (found == nullptr) return sys_error(saved, "find the working directory");
  // The kernel returns "(unreachable)/…" if the directory is not in this mount namespace.
  if (*found != '/') return make_error(Kind::not_found, "find the working directory");
  return std::string(found);
}

}  // namespace berth::sys
