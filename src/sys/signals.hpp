// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

struct ReceivedSignal {
  int number = 0;
  /// The kernel sent it (a key of the terminal, a fault), so it went to the whole foreground group.
  bool from_kernel = false;
  pid_t sender = 0;
};

/// Blocks `numbers` in this thread and gives a non-blocking descriptor that receives them.
/// signalfd(2), pthread_sigmask(3)
Result<Fd> receive_signals(const std::vector<int>& numbers);

/// The signals that were blocked in this thread when it was made are blocked again, and no others,
/// when it goes. pthread_sigmask(3)
class SignalMask {
 public:
  SignalMask();
  ~SignalMask();
  SignalMask(SignalMask&&) = delete;

 private:
  sigset_t before_;
};

/// The next signal, or nothing when none is pending.
Result<std::optional<ReceivedSignal>> read_signal(const Fd& fd);

/// The signals that may be passed on to a container: all that can be caught but for those of faults
/// and of job control, CHLD, PIPE, URG and WINCH. Real-time signals included.
std::vector<int> forwardable_signals();

/// This process gets signal `number` where this lives a second after the other end of the socket
/// `fd` has said that it will send nothing more; a thread waits for that, to the end of the
/// process. Where there can be no thread nothing happens.
class SignalOnHangup {
 public:
  SignalOnHangup(int fd, int number);
  SignalOnHangup(SignalOnHangup&&) = delete;
  ~SignalOnHangup();

 private:
  std::shared_ptr<std::atomic<bool>> wanted_ = std::make_shared<std::atomic<bool>>(true);
};

/// A signal that does nothing to this process while the object lives. sigaction(2)
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number);
  ~IgnoredSignal();
  IgnoredSignal(IgnoredSignal&&) = delete;

 private:
  int number_;
  struct sigaction before_;
};

/// "TERM", "SIGTERM", "15", "rtmin+3" → number; nothing for others.
std::optional<int> signal_number(std::string_view text);

}  // namespace berth::sys
