// SPDX-License-Identifier: Apache-2.0
#include "spank/step_watch.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "spank/start.hpp"

namespace berth::spank {
namespace {

[[noreturn]] void wait_to_be_killed(pid_t parent) {
  // Close all descriptors: an open pipe of the tasks would keep srun waiting.
  close_from(0);
  // When Slurm kills a step without cgroups, it spares processes that are named slurmstepd.
  ::prctl(PR_SET_NAME, "berth-watch", 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) _exit(0);
  // Slurm sends SIGTERM first, and the step may go on after that, so only SIGKILL may end this
  // process.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  while (true) ::pause();
}

}  // namespace

StepWatch::StepWatch() {
  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) wait_to_be_killed(parent);
  if (pid_ > 0) handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

StepWatch::~StepWatch() {
  if (handle_ >= 0) ::close(handle_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);  // the pid is not reused before waitpid()
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace berth::spank
