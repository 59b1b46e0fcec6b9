// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/top.hpp"

#include <algorithm>

#include "engine/gpu/list.hpp"
#include "engine/gpu/outside.hpp"
#include "engine/gpu/use.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/ledger/record.hpp"
#include "gpu/probe/amd_use.hpp"

namespace berth::engine {
namespace {

/// Makes the state of one GPU, or of one slice.
class StateMaker {
 public:
  StateMaker(const gpu::Uses& use, const gpu::Holders& holders, const gpu::ProcessView& view)
      : use_(use), holders_(holders), view_(view) {}

  GpuState whole(const gpu::Gpu& gpu) const;
  GpuState slice(const gpu::Gpu& gpu, const gpu::MigDevice& slice) const;
  GpuState partition(const gpu::Gpu& gpu, const gpu::Partition& partition) const;

 private:
  GpuState make(const gpu::Selected& selected) const;
  const gpu::Use* use_of(const gpu::Gpu& gpu) const;
  void add_process(const gpu::ProcessUse& told, GpuState& state) const;

  const gpu::Uses& use_;
  const gpu::Holders& holders_;
  const gpu::ProcessView& view_;
};

GpuState StateMaker::make(const gpu::Selected& selected) const {
  GpuState state;
  state.index = gpu::index_of(selected);
  state.id = gpu::name_of(selected);
  state.model = selected.gpu->model;
  for (const gpu::KnownLease* one : gpu::leases_on(gpu::key_of(selected), holders_.leases)) {
    state.leases.push_back(*one);
  }
  return state;
}

const gpu::Use* StateMaker::use_of(const gpu::Gpu& gpu) const {
  auto found = std::ranges::find(use_.gpus, gpu.pci_address, &gpu::Use::pci_address);
  return found == use_.gpus.end() ? nullptr : &*found;
}

void StateMaker::add_process(const gpu::ProcessUse& told, GpuState& state) const {
  GpuProcess& process = state.processes->emplace_back();
  process.pid = told.pid;
  process.used_bytes = told.used_bytes;
  auto seen = view_.see(told.pid);
  if (!seen) return;
  process.command = seen->command;
  process.user = seen->user;
  std::vector<const gpu::KnownLease*> leases;
  for (const gpu::KnownLease& one : state.leases) leases.push_back(&one);
  const gpu::KnownLease* found = gpu::lease_of(told.pid, leases, view_);
  if (found != nullptr) process.lease = found->lease;
}

GpuState StateMaker::whole(const gpu::Gpu& gpu) const {
  GpuState state = make({&gpu});
  const gpu::Use* known = use_of(gpu);
  if (known == nullptr) return state;
  state.busy_percent = known->busy_percent;
  state.memory = known->memory;
  state.celsius = known->celsius;
  state.milliwatts = known->milliwatts;
  if (!gpu.mig.empty() || !known->processes) return state;
  state.processes.emplace();
  for (const gpu::ProcessUse& one : *known->processes) add_process(one, state);
  return state;
}

GpuState StateMaker::slice(const gpu::Gpu& gpu, const gpu::MigDevice& slice) const {
  GpuState state = make({&gpu, &slice});
  state.model = "MIG " + slice.profile;
  const gpu::Use* known = use_of(gpu);
  if (known == nullptr) return state;
  for (const gpu::SliceUse& one : known->slices) {
    if (one.gpu_instance == slice.gpu_instance && one.compute_instance == slice.compute_instance)
      state.memory = one.memory;
  }
  if (!known->processes) return state;
  state.processes.emplace();
  for (const gpu::ProcessUse& one : *known->processes) {
    if (one.gpu_instance == slice.gpu_instance && one.compute_instance == slice.compute_instance)
      add_process(one, state);
  }
  return state;
}

GpuState StateMaker::partition(const gpu::Gpu& gpu, const gpu::Partition& partition) const {
  GpuState state = make({&gpu, nullptr, &partition});
  state.model = gpu.compute_partition + " partition";
  return state;
}

}  // namespace

std::vector<GpuState> gpu_states(const gpu::Inventory& inventory, const gpu::Uses& use,
                                 const gpu::Holders& holders, const gpu::ProcessView& view) {
  StateMaker maker(use, holders, view);
  std::vector<GpuState> states;
  for (const gpu::Gpu& gpu : inventory.gpus) {
    states.push_back(maker.whole(gpu));
    for (const gpu::MigDevice& slice : gpu.mig) states.push_back(maker.slice(gpu, slice));
    for (const gpu::Partition& one : gpu.partitions) states.push_back(maker.partition(gpu, one));
  }
  return states;
}

std::string container_of(const gpu::Lease& lease) {
  constexpr size_t kShort = 12;
  return lease.name.empty() ? lease.container.substr(0, kShort) : lease.name;
}

Result<GpuTop> gpu_top(const Context& context) {
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  GpuTop top;
  gpu::Holders holders;
  auto held = list_gpu_holders(context);
  if (held.ok()) {
    holders = *std::move(held);
    top.waiting = holders.queue.size();
  } else {
    context.log.warn(to_line(held.error()) + ", ignoring");
  }
  gpu::Here here = TRY(gpu::look_around());
  gpu::ProcessView view{gpu::see_process, here.pid_space};
  top.synthetic = inventory.synthetic;
  auto nvml = nvml_use(context, inventory);
  if (nvml) keep_computing(context, inventory, here, *nvml);
  gpu::Uses use = std::move(nvml).value_or(gpu::Uses());
  gpu::add_amd_uses(inventory, use);
  top.gpus = gpu_states(inventory, use, holders, view);
  return top;
}

}  // namespace berth::engine
