// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "engine/context/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/outside.hpp"
#include "gpu/probe/use.hpp"

namespace berth::engine {

/// Processes that compute on GPUs, among which gpu::Chooser finds those without a lease: those that
/// NVIDIA's driver reported within the last seconds, and those that AMD's driver reports now.
class OutsideWatch {
 public:
  OutsideWatch(const Context& context, const gpu::Inventory& inventory)
      : context_(context), inventory_(inventory) {}

  /// May ask NVIDIA's driver, which takes at most five seconds, unless another process has just
  /// asked. If the driver does not answer, warns once, uses the earlier answer, and does not ask
  /// again for a while.
  gpu::Outside look();

 private:
  using Clock = std::chrono::steady_clock;
  void refresh(const gpu::Here& here);

  const Context& context_;
  const gpu::Inventory& inventory_;
  std::vector<gpu::Computing> known_;  ///< reported by NVIDIA's driver
  Clock::time_point until_;
  bool warned_ = false;
};

/// Stores the driver's latest answer for other processes, and returns it.
std::vector<gpu::Computing> keep_computing(const Context& context, const gpu::Inventory& inventory,
                                           const gpu::Here& here, const gpu::Uses& use);

}  // namespace berth::engine
