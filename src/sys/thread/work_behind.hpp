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

/// One thread that does one piece of work after the other while its owner goes on. What was begun
/// is done before this is gone.
class WorkBehind {
 public:
  using Work = std::function<Result<void>()>;

  /// At most `depth` pieces of work wait or are being done.
  explicit WorkBehind(size_t depth);
  ~WorkBehind();

  /// False where it has enough to do, or the system grants no thread; then nothing is begun.
  bool begin(Work work);
  /// Returns when there is nothing to do.  Errors: the first of what was begun, once.
  Result<void> wait();

 private:
  void serve();

  const size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> works_;  ///< the first is being done
  bool ending_ = false;
  Result<void> outcome_;
  std::optional<std::jthread> thread_;
};

}  // namespace berth::sys
