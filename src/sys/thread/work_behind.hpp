// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/result.hpp"

namespace berth::sys {

/// A thread that executes pieces of work in order while its owner continues. The destructor waits
/// for work that has begun.
class WorkBehind {
 public:
  using Work = std::function<Result<void>()>;

  /// At most `depth` pieces of work are waiting or running.
  explicit WorkBehind(size_t depth);
  ~WorkBehind();

  /// False if `depth` pieces are pending or the system grants no thread; then the work is not
  /// begun.
  bool begin(Work work);
  /// Waits until no work is pending.  Errors: the first error of the work, once.
  Result<void> wait();

 private:
  void serve();

  const size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> works_;  ///< the first one is running
  bool ending_ = false;
  Result<void> outcome_;
  std::optional<std::jthread> thread_;
};

}  // namespace berth::sys
