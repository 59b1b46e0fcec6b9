// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/poll.hpp"

#include <cerrno>

namespace berth::sys {

Result<int> poll(std::vector<pollfd>& entries, std::optional<std::chrono::milliseconds> deadline) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + deadline.value_or(std::chrono::milliseconds(0));
  while (true) {
    int wait = -1;
    if (deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
      wait = left > 0 ? static_cast<int>(left) : 0;
    }
    int ready = ::poll(entries.data(), entries.size(), wait);
    if (ready >= 0) return ready;
    if (errno != EINTR) return errno_now().error("poll");
  }
}

}  // namespace berth::sys
