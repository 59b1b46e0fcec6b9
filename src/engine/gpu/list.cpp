// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/list.hpp"

#include <string>
#include <utility>

#include "engine/container/list.hpp"
#include "gpu/inventory/access.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

Result<policy::Gpu> gpu_policy_of(const Context& context) {
  policy::Compiled compiled = TRY_CTX(policy::read_compiled(context.paths.config),
                                      "cannot read the policy of this machine");
  return std::move(compiled.policy.gpu);
}

// Uses the site's driver root unless the user names one.
Result<gpu::Inventory> inventory_of(const Context& context, const policy::Gpu& policy,
                                    gpu::Refresh refresh) {
  gpu::ProbeOptions options;
  options.driver_root = context.paths.driver_root;
  if (options.driver_root == "/" && !policy.driver_root.empty()) {
    options.driver_root = policy.driver_root;
  }
  options.configured = {policy.library_directories, policy.files};
  options.services_of_root = context.services_of_root;
  options.state_dir = context.paths.state;
  options.probe_program = context.paths.libexec + "/berth-gpu-probe";
  return gpu::cached_inventory(options, refresh, context.log);
}

Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh) {
  policy::Gpu policy = TRY(gpu_policy_of(context));
  gpu::Inventory inventory = TRY(inventory_of(context, policy, refresh));
  gpu::leave_out_denied(inventory);
  return inventory;
}

Result<gpu::Holders> list_gpu_holders(const Context& context) {
  policy::Gpu policy = TRY(gpu_policy_of(context));
  gpu::Ledger ledger = TRY(open_gpu_ledger(context, policy));
  gpu::Holders holders = TRY(ledger.look());
  for (gpu::KnownLease& one : holders.leases) {
    if (!one.lease.name.empty()) continue;
    auto found = get_container(context, one.lease.container);
    if (found.ok()) one.lease.name = found->name;
  }
  return holders;
}

Result<gpu::Ledger> open_gpu_ledger(const Context& context, const policy::Gpu& site) {
  std::string path = site.ledger.empty() ? std::string(gpu::kMachineLedger) : site.ledger;
  return gpu::Ledger::open(path, context.paths.state);
}

}  // namespace berth::engine
