// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "hub/config/address.hpp"

namespace berth::hub {

/// Queues work for a pool of threads, with a limit per address: work beyond it waits and does not
/// delay others. Thread-safe.
class Turns {
 public:
  using Task = std::function<void()>;

  /// `start` passes a task to the pool, and has to outlive its tasks.
  Turns(size_t most_of_one, std::function<void(Task)> start)
      : most_of_one_(most_of_one), start_(std::move(start)) {}

  /// Starts `task` now or when another one of its address (see neighbourhood()) has ended. `task`
  /// must not throw.
  void add(const Address& address, Task task);

 private:
  struct OfOne {
    size_t running = 0;
    std::deque<Task> waiting;
  };

  void start(const Address& key, Task task);
  void ended(const Address& key);

  const size_t most_of_one_;
  const std::function<void(Task)> start_;
  std::mutex mutex_;
  std::map<Address, OfOne> addresses_;
};

}  // namespace berth::hub
