// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/mps.hpp"
#include "engine/request/request.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

/// What drafting a container does with the GPU ledger.
enum class Leasing {
  nothing,  ///< it is not started: the start decides
  look,     ///< what it would get now
  take,     ///< it is started
  change,   ///< it runs: what it has it keeps where it can, and until the lease is settled anyway
};

struct LeasedGpus {
  gpu::Request request;                 ///< the wish, where it was another container's: its keys
  std::vector<gpu::Selected> selected;  ///< into the inventory
  std::optional<gpu::MpsShare> share;   ///< that its programs compute through
  std::string share_name;
  gpu::HeldLease lease;  ///< with Leasing::take, and where there is any GPU
};

/// What the bundle of a container says of its lease; nothing where it has none.
Result<std::optional<gpu::LeaseNote>> read_lease_note(const Context& context,
                                                      const RunRequest& request,
                                                      const std::string& id);

/// The keys of GPUs that a container gets by other ways than a wish: CDI names, and nodes that were
/// named by their paths.
std::vector<std::string> keys_beside(const RunRequest& request, const gpu::Choice& choice,
                                     const gpu::Inventory& inventory);

/// Chooses what `wish`, which is the container `id` of `request`, gets of `inventory`, and waits
/// for it where that was asked for, and which share of MPS it computes through: its own wish, or
/// that of the container whose GPUs it shares. With Leasing::take nobody else is given what is
/// exclusive from then on; with Leasing::change the lease is that of the container's bundle,
/// widened. `beside`: of keys_beside(). Errors: those of gpu::select() and gpu::Ledger, not_found
/// (--gpus from: no such container), denied (it is somebody else's), interrupted (a signal while
/// waiting), share_of(), check_share().
Result<LeasedGpus> lease_gpus(const Context& context, const RunRequest& request,
                              const std::string& id, gpu::Request wish, const policy::Gpu& site,
                              const gpu::Inventory& inventory,
                              const std::vector<std::string>& beside, const MpsPlan& mps,
                              Leasing leasing);

}  // namespace berth::engine
