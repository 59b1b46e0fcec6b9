// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "engine/context/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/outside.hpp"
#include "gpu/probe/use.hpp"

namespace berth::engine {

/// Processes that compute on GPUs without a lease, as NVIDIA's driver told within the last seconds,
/// and AMD's tells now.
class OutsideWatch {
 public:
  OutsideWatch(const Context& context, const gpu::Inventory& inventory)
      : context_(context), inventory_(inventory) {}

  /// May ask NVIDIA's driver, which takes five seconds at most, after another one has. One that
  /// does not answer is a warning, and is left alone for a while: what it told before counts on.
  gpu::Outside look();

 private:
  using Clock = std::chrono::steady_clock;
  void refresh(const gpu::Here& here);

  const Context& context_;
  const gpu::Inventory& inventory_;
  std::vector<gpu::Computing> known_;  ///< by NVIDIA's driver
  Clock::time_point until_;
  bool warned_ = false;
};

/// Keeps for others what the driver has just told; gives the same.
std::vector<gpu::Computing> keep_computing(const Context& context, const gpu::Inventory& inventory,
                                           const gpu::Here& here, const gpu::Uses& use);

/// Of what NVML told the processes that compute, of a GPU that is cut those whose slice it tells.
/// `see` as of gpu::ProcessView, for their start times. Numbers that are no process are left out.
std::vector<gpu::Computing> computing_of(const gpu::Inventory& inventory, const gpu::Uses& use,
                                         const gpu::SeeProcess& see);

}  // namespace berth::engine
