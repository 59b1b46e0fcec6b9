// SPDX-License-Identifier: Apache-2.0
#include "spank/start.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.hpp"
#include "slurm/hold.hpp"

namespace berth::spank {
namespace {

/// A copy of `fd` that no other descriptor of ours can be in the way of.
int moved_up(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

/// For execve(2), which writes into none of them; with the null at the end.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void fail(int report, int error) {
  ssize_t written = ::write(report, &error, sizeof error);
  _exit(written == sizeof error ? 127 : 126);
}

/// Between fork and exec of a process that had one thread.
[[noreturn]] void become(const Program& program, char** argv, char** environment, int report) {
  if (::setsid() < 0) fail(report, errno);
  // Twice, so that the user's program has no child that it does not know.
  pid_t second = ::fork();
  if (second < 0) fail(report, errno);
  if (second > 0) _exit(0);
  int step = moved_up(program.step);
  int file = moved_up(program.rights);
  int reporter = moved_up(report);
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  int out = program.shows_output ? STDERR_FILENO : null;
  if (step < 0 || file < 0 || reporter < 0 || null < 0) fail(report, errno);
  if (::dup2(null, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(step, slurm::kHoldSocket) < 0 || ::dup2(file, slurm::kRightsFile) < 0) {
    fail(reporter, errno);
  }
  // Whatever Slurm has left open here is not for a program that outlives this task.
  ::syscall(SYS_close_range, slurm::kRightsFile + 1, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::execve(program.path.c_str(), argv, environment);
  fail(reporter, errno);
}

}  // namespace

Result<void> start_berth(const Program& program) {
  std::vector<char*> argv = {const_cast<char*>("berth")};
  for (char* word : pointers(program.words)) argv.push_back(word);
  std::vector<char*> environment = pointers(program.environment);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) {
    return errno_now().error("start " + quoted(program.path));
  }
  pid_t first = ::fork();
  if (first < 0) return errno_now().error("start " + quoted(program.path));
  if (first == 0) become(program, argv.data(), environment.data(), report[1]);
  ::close(report[1]);
  while (::waitpid(first, nullptr, 0) < 0 && errno == EINTR) {
  }
  int error = 0;
  ssize_t count = ::read(report[0], &error, sizeof error);
  ::close(report[0]);
  if (count == sizeof error) return sys_error(error, "execute " + quoted(program.path));
  return {};
}

}  // namespace berth::spank
