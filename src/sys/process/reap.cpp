// SPDX-License-Identifier: Apache-2.0
#include "sys/process/reap.hpp"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>

namespace berth::sys {
namespace {

// include/uapi/linux/pidfd.h of Linux 6.15; the first version of the structure, which grows at its
// end.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t ids[11];  // pid, tgid, ppid, and four pairs of user and group
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kInfoExit = 1 << 3;

}  // namespace

ExitStatus exit_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return ExitStatus{0, WTERMSIG(wait_status)};
  return ExitStatus{WEXITSTATUS(wait_status), 0};
}

std::optional<ExitStatus> look_at_exit(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
      info.si_pid != pid) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{info.si_status, 0};
  return ExitStatus{0, info.si_status};
}

void reap_others(pid_t kept, pid_t also) {
  // A kept process hides those behind it until it is reaped: they wait.
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return;
    if (info.si_pid == 0 || info.si_pid == kept || info.si_pid == also) return;
    ::waitpid(info.si_pid, nullptr, __WALL);
  }
}

std::optional<ExitStatus> exit_of(const Fd& pidfd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (::ioctl(pidfd.get(), _IOWR(0xFF, 11, PidfdInfo), &info) != 0) return std::nullopt;
  if ((info.mask & kInfoExit) == 0) return std::nullopt;
  return exit_status(info.exit_code);
}

}  // namespace berth::sys
