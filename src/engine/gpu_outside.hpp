// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/outside.hpp"
#include "gpu/probe/nvml_use.hpp"

namespace berth::engine {

/// Who computes on GPUs without a lease, asked of NVIDIA's driver each time when what it told last
/// is too old.
class OutsideWatch {
 public:
  OutsideWatch(const Context& context, const gpu::Inventory& inventory)
      : context_(context), inventory_(inventory) {}

  /// A driver that does not answer is a warning, and is not asked again.
  gpu::Outside look();

 private:
  const Context& context_;
  const gpu::Inventory& inventory_;
  bool silent_ = false;
};

/// Keeps for others what the driver has just told; gives the same.
std::vector<gpu::Computing> keep_computing(const Context& context, const gpu::Inventory& inventory,
                                           const gpu::NvmlUse& use);

/// Of what NVML told the processes that compute, of a GPU that is cut those whose slice it tells.
/// `see` as of gpu::ProcessView, for their start times. Pure.
std::vector<gpu::Computing> computing_of(const gpu::Inventory& inventory, const gpu::NvmlUse& use,
                                         const gpu::SeeProcess& see);

}  // namespace berth::engine
