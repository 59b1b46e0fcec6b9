// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace berth::kube {

/// Tells threads that something has changed. Safe for several threads.
class Wake {
 public:
  void change() {
    {
      std::lock_guard lock(mutex_);
      ++version_;
    }
    condition_.notify_all();
  }

  uint64_t version() const {
    std::lock_guard lock(mutex_);
    return version_;
  }

  /// Waits until there was a change after `seen`, at most for `limit`.
  void wait(uint64_t seen, std::chrono::milliseconds limit) const {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, limit, [&] { return version_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable condition_;
  uint64_t version_ = 0;
};

}  // namespace berth::kube
