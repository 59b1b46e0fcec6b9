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

/// How a new connection is treated.
enum class Welcome {
  served,
  refused,  ///< its first request is answered with 429, then it is closed
  closed,   ///< closed at once
};

/// The open connections, by client address. An address that is at its limit still gets an answer,
/// but from a few separate slots: a refused client must not be able to keep other clients waiting.
class Guests {
 public:
  /// The maximal number of connections of one neighbourhood(), and of refused connections.
  Guests(size_t most_of_one, size_t most_refused)
      : most_of_one_(most_of_one), most_refused_(most_refused) {}

  Welcome add(const Address& address);
  /// `welcome` is what add() returned for this address. Not to be called after `closed`.
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

  /// `start` passes a task to the pool. This object has to outlive the tasks.
  Turns(size_t most_of_one, std::function<void(Task)> start)
      : most_of_one_(most_of_one), start_(std::move(start)) {}

  /// Starts `task` now, or when another task of this address (see neighbourhood()) has ended.
  /// `task` must not throw.
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

/// Counts the bytes of large documents that clients are about to read. A document that several
/// clients read counts once. Thread-safe.
class Outgoing {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  explicit Outgoing(size_t most) : most_(most) {}

  /// Counts one more client of `bytes`, which is not null. Returns false and counts nothing if all
  /// documents together would exceed the limit.
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
