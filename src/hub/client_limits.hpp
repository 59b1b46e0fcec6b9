// SPDX-License-Identifier: Apache-2.0
// The limits that keep one client from harming others: connections, threads, bytes.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hub/config/address.hpp"

namespace berth::hub {

/// The treatment of a new connection.
enum class Welcome {
  served,
  refused,  ///< its first request is answered with 429, and it ends
  closed,   ///< at once
};

/// The open connections, by client address. An address at its limit still gets an answer, but in a
/// few separate slots: a refused client must not be able to keep others waiting.
class Guests {
 public:
  /// The limits for one neighbourhood(), and for refused connections.
  Guests(size_t most_of_one, size_t most_refused)
      : most_of_one_(most_of_one), most_refused_(most_refused) {}

  Welcome add(const Address& address);
  /// `welcome` is the result of add() for this address, unless that was `closed`.
  void remove(const Address& address, Welcome welcome);

  size_t served() const { return served_; }
  bool empty() const { return served_ == 0 && refused_ == 0; }

 private:
  const size_t most_of_one_;
  const size_t most_refused_;
  size_t served_ = 0;
  size_t refused_ = 0;
  std::map<Address, size_t> of_one_;
};

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

/// Large documents that clients are about to read, each counted once for all its clients.
/// Thread-safe.
class Outgoing {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  explicit Outgoing(size_t most) : most_(most) {}

  /// Counts one more client of `bytes`, which is not null. False, and nothing counted, if all
  /// together would exceed the limit.
  bool add(const Bytes& bytes);
  /// Call once for each add() that returned true.
  void remove(const Bytes& bytes);

  size_t held() const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  size_t held_ = 0;
  std::map<const std::string*, size_t> takers_;
};

}  // namespace berth::hub
