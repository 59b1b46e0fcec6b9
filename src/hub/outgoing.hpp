// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace berth::hub {

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
