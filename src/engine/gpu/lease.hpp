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

/// How the decision about a container uses the GPU ledger.
enum class Leasing {
  nothing,  ///< the container is not started: its start decides
  look,     ///< finds what the container would get now
  take,     ///< the container starts
  /// The container runs: keeps its GPUs if possible, and has the old and the new ones until
  /// Ledger::finish().
  change,
};

struct LeasedGpus {
  gpu::Request request;                 ///< for --gpus from: with the keys of that container's GPUs
  std::vector<gpu::Selected> selected;  ///< points into the inventory
  std::optional<gpu::MpsShare> share;   ///< that the container's programs use
  std::string share_name;
  gpu::HeldLease lease;  ///< with Leasing::take and change, if it contains any GPU
};

/// The lease in the bundle of a container; nothing if it has none.
Result<std::optional<gpu::LeaseNote>> read_lease_note(const Context& context,
                                                      const RunRequest& request,
                                                      const std::string& id);

/// The keys (names in the ledger) of GPUs that a container gets without --gpus: by CDI name, or by
/// the path of a node.
std::vector<std::string> keys_beside(const RunRequest& request, const gpu::Choice& choice,
                                     const gpu::Inventory& inventory);

/// Chooses GPUs of `inventory` for `wish` of the container `id`, waiting for them if `request` asks
/// for that. Also chooses the MPS share that the container uses: its own, or that of the container
/// that shares its GPUs. With Leasing::take, takes the lease in the ledger: from then on no
/// container outside its group gets these GPUs if the lease is exclusive, and none gets them
/// exclusively if it is not. With Leasing::change, widens the lease in the container's bundle.
/// `beside`: from keys_beside(). Errors: those of gpu::select() and gpu::Ledger, not_found (--gpus
/// from: no such container), denied (that container belongs to another user), interrupted (a signal
/// while waiting), and those of share_of() and check_share().
Result<LeasedGpus> lease_gpus(const Context& context, const RunRequest& request,
                              const std::string& id, gpu::Request wish, const policy::Gpu& site,
                              const gpu::Inventory& inventory,
                              const std::vector<std::string>& beside, const MpsPlan& mps,
                              Leasing leasing);

}  // namespace berth::engine
