// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::transfer {

/// A thread that runs `work`, or none where the system grants no more (RLIMIT_NPROC, pids.max).
template <class Work>
std::optional<std::jthread> start_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

/// Runs `work` in `count` threads, in fewer where the system grants no more, in this one where it
/// grants none, and returns when all have ended. `work` takes its tasks from a queue of its own.
void run_in_threads(size_t count, const std::function<void()>& work);

}  // namespace berth::transfer
