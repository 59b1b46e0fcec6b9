// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::image {

class Lease;

/// A lock of the whole store; the destructor releases it.
class StoreLock {
 public:
  StoreLock() = default;
  StoreLock(StoreLock&&) noexcept = default;
  StoreLock& operator=(StoreLock&&) = delete;
  ~StoreLock();

  /// Renews the lease, which other machines watch. Call it before each exclusive step.
  /// Errors: busy (it was called so late that another machine may have taken the lock).
  Result<void> renew();

 private:
  friend class Store;
  sys::Fd fd_;
  sys::Fd holder_fd_;
  std::string holder_;            ///< absolute path of the lease
  std::shared_ptr<Lease> lease_;  ///< of a store that several machines write; else null
};

}  // namespace berth::image
