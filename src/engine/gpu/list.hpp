// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/probe/probe.hpp"
#include "policy/policy.hpp"

/// The GPUs of this machine, and the containers that hold them.
namespace berth::engine {

/// The GPU section of the policy.  Errors: those of policy::read_compiled().
Result<policy::Gpu> gpu_policy_of(const Context& context);

/// The machine's GPUs and driver, including GPUs that this caller may not open. Uses the site's
/// driver root unless the user names one.  Errors: those of list_gpus().
Result<gpu::Inventory> inventory_of(const Context& context, const policy::Gpu& policy,
                                    gpu::Refresh refresh);

/// The machine's driver, and the GPUs that the device cgroup of this process permits; from the
/// cache unless it is stale or `refresh` forces a probe.
/// Errors: not_found (the driver root), corrupt.
Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh);

/// The containers that hold GPUs of this machine, and those that wait. A generated name is known
/// only for containers of this store. Errors: those of open_gpu_ledger() and of reading the policy.
Result<gpu::Holders> list_gpu_holders(const Context& context);

/// The machine's ledger, or this user's own if root has made none.
/// Errors: those of gpu::Ledger::open().
Result<gpu::Ledger> open_gpu_ledger(const Context& context, const policy::Gpu& site);

}  // namespace berth::engine
