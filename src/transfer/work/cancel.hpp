// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/result.hpp"

namespace berth::transfer {

/// A request to stop, shared by the threads of one transfer: set by SIGINT and SIGTERM, and by the
/// first thread that fails. Long loops check it between chunks.
class Cancel {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

  /// Errors: interrupted, once it is requested.
  Result<void> check() const {
    if (requested()) return make_error(Kind::interrupted, "stopped by a signal");
    return {};
  }

 private:
  std::atomic<bool> requested_{false};
};

}  // namespace berth::transfer
