// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "hub/config/address.hpp"

namespace berth::hub {

/// Work for a pool of threads, of which one address has so many at most: what it asks for beyond
/// that waits for its own turns and keeps nobody else waiting. Any thread.
class Turns {
 public:
  using Task = std::function<void()>;

  /// `start` hands a task to the pool. It outlives what it was given.
  Turns(size_t most_of_one, std::function<void(Task)> start)
      : most_of_one_(most_of_one), start_(std::move(start)) {}

  /// Starts `task` now or when one of its address (see neighbourhood()) has ended. It throws
  /// nothing.
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
