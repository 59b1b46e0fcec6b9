// SPDX-License-Identifier: Apache-2.0
#include "sys/process/signals.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/text.hpp"
#include "sys/thread/thread.hpp"

namespace berth::sys {
namespace {

constexpr std::chrono::milliseconds kGrace{1000};  ///< the delay of SignalOnHangup

}  // namespace

SignalMask::SignalMask() {
  pthread_sigmask(SIG_SETMASK, nullptr, &before_);
}

SignalMask::~SignalMask() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<Fd> receive_signals(const std::vector<int>& numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : numbers) sigaddset(&set, number);
  if (int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return sys_error(error, "block signals");
  }
  int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return errno_now().error("receive signals");
  return Fd(fd);
}

Result<std::optional<ReceivedSignal>> read_signal(const Fd& fd) {
  signalfd_siginfo info{};
  ssize_t got;
  do {
    got = ::read(fd.get(), &info, sizeof info);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::optional<ReceivedSignal>();
  if (got < 0) return errno_now().error("read a signal");
  ReceivedSignal received;
  received.number = static_cast<int>(info.ssi_signo);
  received.from_kernel = info.ssi_code == SI_KERNEL;
  received.sender = static_cast<pid_t>(info.ssi_pid);
  return std::optional<ReceivedSignal>(received);
}

IgnoredSignal::IgnoredSignal(int number) : number_(number), before_() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(number_, &ignore, &before_);  // cannot fail for a signal that may be ignored
}

IgnoredSignal::~IgnoredSignal() {
  ::sigaction(number_, &before_, nullptr);
}

std::vector<int> forwardable_signals() {
  constexpr std::array kept = {SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGURG,  SIGWINCH,
                               SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
                               SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
  std::vector<int> numbers;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    // 32 and 33 are used by the C library.
    if (number > 31 && number < SIGRTMIN) continue;
    if (std::ranges::find(kept, number) == kept.end()) numbers.push_back(number);
  }
  return numbers;
}

std::optional<int> signal_number(std::string_view text) {
  if (auto number = parse_u64(text)) {
    if (*number < 1 || *number > static_cast<uint64_t>(SIGRTMAX)) return std::nullopt;
    return static_cast<int>(*number);
  }
  std::string name = to_lower(text);
  if (name.starts_with("sig")) name.erase(0, 3);
  if (name == "cld") name = "chld";
  if (name == "iot") name = "abrt";
  if (name == "poll") name = "io";
  for (int number = 1; number < 32; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && to_lower(known) == name) return number;
  }
  auto offset = [&](std::string_view base, char sign) -> std::optional<int> {
    if (!name.starts_with(base)) return std::nullopt;
    std::string_view rest = std::string_view(name).substr(base.size());
    if (rest.empty()) return 0;
    auto value = rest[0] == sign ? parse_u64(rest.substr(1)) : std::nullopt;
    if (!value || *value > 64) return std::nullopt;
    return static_cast<int>(*value);
  };
  if (auto plus = offset("rtmin", '+'); plus && SIGRTMIN + *plus <= SIGRTMAX) {
    return SIGRTMIN + *plus;
  }
  if (auto minus = offset("rtmax", '-'); minus && SIGRTMAX - *minus >= SIGRTMIN) {
    return SIGRTMAX - *minus;
  }
  return std::nullopt;
}

SignalOnHangup::SignalOnHangup(int fd, int number) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The kernel must not choose this thread to deliver a signal to.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto thread = start_thread([fd, number, wanted = wanted_] {
    pollfd entry{fd, POLLRDHUP, 0};
    while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {
    }
    // Waits in steps, and stops when the object is destroyed, so that a process that ends by itself
    // gets no signal.
    constexpr int kSteps = 50;
    for (int i = 0; i < kSteps && *wanted; ++i) std::this_thread::sleep_for(kGrace / kSteps);
    if (*wanted) ::kill(::getpid(), number);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread) thread->detach();
}

SignalOnHangup::~SignalOnHangup() {
  *wanted_ = false;
}

}  // namespace berth::sys
