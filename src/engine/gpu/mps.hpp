// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/gpu_memory.hpp"
#include "engine/request/request.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/mps/share.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

/// What is known of MPS before a container's GPUs are chosen.
struct MpsPlan {
  gpu::MpsLimits limits;  ///< that MPS may have to keep
  MemoryRegions regions;  ///< where the kernel keeps that of memory
  uint32_t user = 0;      ///< of its programs, as this process counts
  bool takes = false;     ///< while the share lives nobody but MPS computes on its GPUs
  std::map<std::string, std::string> modes = {};  ///< compute modes by PCI address, where told

  bool wanted() const { return limits != gpu::MpsLimits(); }
};

/// Asks the driver for compute modes where MPS may have to keep a limit of `request`.
/// Errors: unsupported (MPS cannot be had here: why), usage (what cannot go with it).
Result<MpsPlan> plan_mps(const Context& context, const RunRequest& request, const policy::Gpu& site,
                         const gpu::Inventory& inventory, const oci::Spec& spec);

/// What of `plan` MPS keeps on these GPUs: of memory what the kernel does not.
gpu::MpsLimits limits_by_mps(const MpsPlan& plan, const std::vector<gpu::Selected>& selected);

/// Why the container of `request` cannot compute through MPS. Errors: unsupported, usage.
Result<void> check_mps(const RunRequest& request, const gpu::MpsLimits& limits,
                       const gpu::Inventory& inventory);

/// The share of these GPUs. Errors: unsupported (one that MPS does not serve), usage (it has not so
/// much), denied (nobody may compute on it).
Result<gpu::MpsShare> share_of(const MpsPlan& plan, const gpu::MpsLimits& limits,
                               const std::vector<gpu::Selected>& selected);

/// Whether `lease`, which computes through a share, can: where one of its GPUs is for one process
/// alone, nobody else computes there by another way. Errors: busy.
Result<void> check_share(const MpsPlan& plan, const std::vector<gpu::Selected>& selected,
                         const gpu::Holders& holders, const gpu::Lease& lease);

/// Makes the container see the share. Pure.
void add_share(const gpu::MpsPlace& place, oci::Spec& spec);

/// Starts the share's daemon where it does not run. Errors: those of gpu::join_share().
Result<void> start_share(const Context& context, const MpsPlan& plan, const gpu::MpsShare& share,
                         const std::vector<gpu::Selected>& selected,
                         const gpu::Inventory& inventory, const gpu::HeldLease& lease);

}  // namespace berth::engine
