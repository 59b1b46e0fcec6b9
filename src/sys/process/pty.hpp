// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

struct WindowSize {
  uint16_t rows = 0;
  uint16_t columns = 0;
};

/// Unlocks the pseudo-TTY of `master` (an open ptmx) and opens its other end. TIOCGPTPEER
Result<Fd> open_terminal(const Fd& master);
/// Makes `terminal` the standard input, output and error, and the controlling terminal of this
/// process, which has to lead a session without a controlling terminal. TIOCSCTTY, dup2(2)
Result<void> become_terminal(const Fd& terminal);
/// setsid(2); no error if this process leads a session already.
Result<void> new_session();

bool is_terminal(int fd);
/// TIOCGWINSZ, TIOCSWINSZ
Result<WindowSize> window_size(const Fd& terminal);
Result<void> set_window_size(const Fd& terminal, WindowSize size);

/// Puts a terminal into raw mode; the destructor restores it. tcsetattr(3)
class RawMode {
 public:
  RawMode() = default;
  RawMode(RawMode&& other) noexcept;
  RawMode& operator=(RawMode&& other) noexcept;
  ~RawMode();
  static Result<RawMode> enter(int fd);

 private:
  int fd_ = -1;
  termios before_{};
};

}  // namespace berth::sys
