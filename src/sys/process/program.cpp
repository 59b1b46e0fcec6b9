// SPDX-License-Identifier: Apache-2.0
#include "sys/process/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/text.hpp"
#include "sys/process/process.hpp"

namespace berth::sys {
namespace {

constexpr unsigned kCloseRangeCloexec = 4;
constexpr unsigned kFallbackLimit = 65536;
constexpr std::chrono::seconds kStartPatience{5};

enum class OnRange : unsigned { close = 0, close_on_exec = kCloseRangeCloexec };

Result<void> close_range(unsigned first, unsigned last, OnRange what) {
  if (::syscall(SYS_close_range, first, last, static_cast<unsigned>(what)) == 0) return {};
  int saved = errno;
  if (saved != ENOSYS && saved != EINVAL && saved != EPERM) {
    return sys_error(saved, "close file descriptors");
  }
  // COMPAT(5.11): delete when that is our baseline.
  long limit = ::sysconf(_SC_OPEN_MAX);
  auto end = limit > 0 && limit < kFallbackLimit ? static_cast<unsigned>(limit) : kFallbackLimit;
  for (unsigned fd = first; fd < end && fd <= last; ++fd) {  // most are not open
    if (what == OnRange::close) {
      ::close(static_cast<int>(fd));
    } else {
      ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
  }
  return {};
}

}  // namespace

Result<void> check_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_now().error("execute " + quote(path));
  // EACCES, as from execve(2): engines turn that errno into an exit status.
  if (S_ISDIR(info.st_mode)) return sys_error(EACCES, "execute directory " + quote(path));
  // AT_EACCESS, because execve(2) uses the effective ids, and access(2) the real ones.
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
    return errno_now().error("execute " + quote(path));
  }
  return {};
}

int own_pid() {
  return ::getpid();
}

Error execute(const std::string& path, const std::vector<std::string>& args,
              const std::vector<std::string>& env) {
  auto argv = arguments(args);
  auto envp = arguments(env);
  ::execve(path.c_str(), argv.data(), envp.data());
  return errno_now().error("execute " + quote(path));
}

Result<void> close_on_exec_from(unsigned first) {
  return close_range(first, ~0U, OnRange::close_on_exec);
}

Result<void> close_all_from(unsigned first, std::vector<int> kept) {
  std::ranges::sort(kept);
  for (int fd : kept) {
    if (fd < 0) continue;
    auto next = static_cast<unsigned>(fd);
    if (next < first) continue;
    if (next > first) TRY(close_range(first, next - 1, OnRange::close));
    first = next + 1;
  }
  return close_range(first, ~0U, OnRange::close);
}

void set_process_name(const char* name) {
  ::prctl(PR_SET_NAME, name);
}

Result<void> send_signal(int pid, int number) {
  if (::kill(pid, number) != 0) return errno_now().error("signal process " + std::to_string(pid));
  return {};
}

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  // exec resets handlers by itself; only ignored signals stay ignored. Listed are those that
  // shells, nohup, Python and Go programs leave ignored, because resetting all 64 would take 64
  // system calls at each start.
  for (int number :
       {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTTIN, SIGTTOU, SIGTSTP, SIGXFSZ, SIGCHLD}) {
    ::sigaction(number, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void end_on_signals() {
  struct sigaction ending {};
  ending.sa_handler = [](int number) { ::_exit(128 + number); };
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::sigaction(number, &ending, nullptr);
}

Result<std::string> own_program(const std::string& directory, std::string_view name,
                                std::string_view part) {
  std::string path = directory + "/" + std::string(name);
  if (check_executable(path).ok()) return path;
  return make_error(Kind::not_found,
                    "this installation has no " + std::string(name) + " in " + quote(directory),
                    "a build of Berth with " + std::string(part) + "=ON, or set BERTH_LIBEXEC_DIR");
}

std::string loader_complaint(const std::string& program) {
  SpawnOptions options;
  options.program = program;
  options.args = {program, "--version"};
  auto ended = run_command(std::move(options), "", kStartPatience);
  if (!ended.ok() || ended->status.code == 0) return "";
  std::string line = escape_controls(split(trim(ended->err), '\n').front());
  // The two messages of ld.so: a library is missing, or a library lacks a symbol version.
  bool told = line.find(": error while loading shared libraries: ") != std::string::npos ||
              line.find("' not found (required by ") != std::string::npos;
  return told ? line : "";
}

}  // namespace berth::sys
