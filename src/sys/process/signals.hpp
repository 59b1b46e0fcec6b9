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
#include "sys/fd/fd.hpp"

namespace berth::sys {

struct ReceivedSignal {
  int number = 0;
  /// The kernel sent the signal (a key of the terminal, a fault), so the whole foreground process
  /// group got it.
  bool from_kernel = false;
  pid_t sender = 0;
};

/// Blocks `numbers` in this thread and returns a non-blocking descriptor that receives them.
/// signalfd(2), pthread_sigmask(3)
Result<Fd> receive_signals(const std::vector<int>& numbers);

/// Saves the blocked signals of this thread; the destructor restores exactly those.
/// pthread_sigmask(3)
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

/// The signals that can be forwarded to a container: all that can be caught, including real-time
/// signals, except the signals of faults and of job control, and CHLD, PIPE, URG and WINCH.
std::vector<int> forwardable_signals();

/// Sends signal `number` to this process if this object still exists a second after the other end
/// of the socket `fd` was shut down for sending. A thread waits for that until the process ends. If
/// the system grants no thread, nothing happens.
class SignalOnHangup {
 public:
  SignalOnHangup(int fd, int number);
  SignalOnHangup(SignalOnHangup&&) = delete;
  ~SignalOnHangup();

 private:
  std::shared_ptr<std::atomic<bool>> wanted_ = std::make_shared<std::atomic<bool>>(true);
};

/// Ignores a signal while the object exists. sigaction(2)
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number);
  ~IgnoredSignal();
  IgnoredSignal(IgnoredSignal&&) = delete;

 private:
  int number_;
  struct sigaction before_;
};

/// "TERM", "SIGTERM", "15", "rtmin+3" → number; nothing for other strings.
std::optional<int> signal_number(std::string_view text);

}  // namespace berth::sys
