// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace berth::hub {

/// Large documents that clients are about to take, each counted once however many take it. Any
/// thread.
class Outgoing {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  explicit Outgoing(size_t most) : most_(most) {}

  /// Counts one more client that takes `bytes`, which is not null. False, and nothing counted:
  /// together with all others they would be more than the most.
  bool add(const Bytes& bytes);
  /// Once for each add() that was true.
  void remove(const Bytes& bytes);

  size_t held() const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  size_t held_ = 0;
  std::map<const std::string*, size_t> takers_;
};

}  // namespace berth::hub
