// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::sys {

/// A thread that runs `work`, or none if the system grants no more (RLIMIT_NPROC, pids.max).
template <class Work>
std::optional<std::jthread> start_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace berth::sys
