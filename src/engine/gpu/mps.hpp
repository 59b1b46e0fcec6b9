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

/// The facts about NVIDIA's MPS before a container's GPUs are chosen. A share is the containers
/// that one MPS daemon serves (gpu/mps/share.hpp).
struct MpsPlan {
  gpu::MpsLimits limits;  ///< limits that MPS may have to enforce
  MemoryRegions regions;  ///< memory that the kernel can limit
  uint32_t user = 0;      ///< uid of the container's programs in our user namespace
  bool takes = false;     ///< only MPS may use the share's GPUs
  std::map<std::string, std::string> modes = {};  ///< compute modes by PCI address, if reported

  bool wanted() const { return limits != gpu::MpsLimits(); }
};

/// Asks the driver for compute modes if MPS may have to enforce a limit of `request`.
/// Errors: unsupported (MPS cannot be used here; the error says why), usage (an option that
/// conflicts with MPS).
Result<MpsPlan> plan_mps(const Context& context, const RunRequest& request, const policy::Gpu& site,
                         const gpu::Inventory& inventory, const oci::Spec& spec);

/// The limits of `plan` that MPS enforces on these GPUs. MPS limits memory only if the kernel
/// cannot.
gpu::MpsLimits limits_by_mps(const MpsPlan& plan, const std::vector<gpu::Selected>& selected);

/// Checks that the container of `request` can use MPS. Errors: unsupported, usage.
Result<void> check_mps(const RunRequest& request, const gpu::MpsLimits& limits,
                       const gpu::Inventory& inventory);

/// The share of these GPUs. Errors: unsupported (a GPU that MPS does not serve), usage (more memory
/// than a GPU has), denied (a GPU in compute mode "prohibited").
Result<gpu::MpsShare> share_of(const MpsPlan& plan, const gpu::MpsLimits& limits,
                               const std::vector<gpu::Selected>& selected);

/// Checks that `lease` can use its share: a GPU that serves one process at a time must not be
/// leased to containers outside the share. Errors: busy.
Result<void> check_share(const MpsPlan& plan, const std::vector<gpu::Selected>& selected,
                         const gpu::Holders& holders, const gpu::Lease& lease);

/// Adds the share to the container. Pure.
void add_share(const gpu::MpsPlace& place, oci::Spec& spec);

/// Starts the share's daemon unless it runs. Errors: those of gpu::join_share().
Result<void> start_share(const Context& context, const MpsPlan& plan, const gpu::MpsShare& share,
                         const std::vector<gpu::Selected>& selected,
                         const gpu::Inventory& inventory, const gpu::HeldLease& lease);

}  // namespace berth::engine
