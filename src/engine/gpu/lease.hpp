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
  nothing,  ///< not started: the start decides
  look,     ///< what it would get now
  take,     ///< it starts
  change,   ///< it runs: keeps its GPUs where possible, and all of them until Ledger::finish()
};

struct LeasedGpus {
  gpu::Request request;                 ///< for another container's GPUs: with their keys
  std::vector<gpu::Selected> selected;  ///< pointing into the inventory
  std::optional<gpu::MpsShare> share;   ///< for its programs
  std::string share_name;
  gpu::HeldLease lease;  ///< with Leasing::take, if it has any GPU
};

/// The lease in the bundle of a container; nothing if it has none.
Result<std::optional<gpu::LeaseNote>> read_lease_note(const Context& context,
                                                      const RunRequest& request,
                                                      const std::string& id);

/// The keys of GPUs that a container gets without --gpus: by CDI names, or by nodes named by path.
std::vector<std::string> keys_beside(const RunRequest& request, const gpu::Choice& choice,
                                     const gpu::Inventory& inventory);

/// Chooses what `wish` of the container `id` of `request` gets of `inventory`, waiting for it if
/// requested, and the MPS share that it uses: its own, or that of the container that shares its
/// GPUs. With Leasing::take, no other container gets exclusive GPUs from then on; with
/// Leasing::change, widens the lease in the container's bundle. `beside`: from keys_beside().
/// Errors: those of gpu::select() and gpu::Ledger, not_found (--gpus from: no such container),
/// denied (it belongs to another user), interrupted (a signal while waiting), share_of(),
/// check_share().
Result<LeasedGpus> lease_gpus(const Context& context, const RunRequest& request,
                              const std::string& id, gpu::Request wish, const policy::Gpu& site,
                              const gpu::Inventory& inventory,
                              const std::vector<std::string>& beside, const MpsPlan& mps,
                              Leasing leasing);

}  // namespace berth::engine
