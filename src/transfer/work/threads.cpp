// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/threads.hpp"

#include <optional>
#include <thread>
#include <vector>

#include "sys/thread/thread.hpp"

namespace berth::transfer {

void run_in_threads(size_t count, const std::function<void()>& work) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  while (threads.size() < count) {
    std::optional<std::jthread> thread = sys::start_thread(work);
    if (!thread) break;
    threads.push_back(*std::move(thread));
  }
  if (threads.empty()) work();
}

}  // namespace berth::transfer
