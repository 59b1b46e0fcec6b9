// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/outside.hpp"

#include <algorithm>

#include "engine/gpu/use.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/ledger/record.hpp"
#include "gpu/probe/probe.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::seconds kOutsidePatience{5};
constexpr std::chrono::seconds kLeftAlone{30};

/// The key of the process's GPU or slice; empty: the GPU is in MIG mode, and the slice is unknown.
std::string key_of(const gpu::Gpu& gpu, const gpu::ProcessUse& process) {
  if (gpu.mig.empty()) return gpu.pci_address;
  for (const gpu::MigDevice& slice : gpu.mig) {
    bool same = process.gpu_instance == slice.gpu_instance &&
                process.compute_instance == slice.compute_instance;
    if (same) return gpu::key_of({&gpu, &slice});
  }
  return {};
}

/// The computing processes in NVML's answer; on a GPU with slices, only those with a known slice.
/// `see`: as in gpu::ProcessView, for the start times. Skips numbers that are not processes.
std::vector<gpu::Computing> computing_of(const gpu::Inventory& inventory, const gpu::Uses& use,
                                         const gpu::SeeProcess& see) {
  std::vector<gpu::Computing> out;
  for (const gpu::Use& known : use.gpus) {
    auto gpu = std::ranges::find(inventory.gpus, known.pci_address, &gpu::Gpu::pci_address);
    if (gpu == inventory.gpus.end()) continue;
    if (!known.processes) continue;
    for (const gpu::ProcessUse& process : *known.processes) {
      std::string key = key_of(*gpu, process);
      if (process.graphics || key.empty()) continue;
      auto one = gpu::computing_now(std::move(key), process.pid, see);
      if (one) out.push_back(*std::move(one));
    }
  }
  return out;
}

}  // namespace

std::vector<gpu::Computing> keep_computing(const Context& context, const gpu::Inventory& inventory,
                                           const gpu::Here& here, const gpu::Uses& use) {
  for (const gpu::Use& one : use.gpus) {
    if (!one.processes) context.log.debug(one.pci_address + ": the driver reports no processes");
  }
  auto processes = computing_of(inventory, use, gpu::see_process);
  auto kept = gpu::write_computing(context.paths.state, gpu::asked_of(inventory, here), processes);
  if (!kept.ok())
    context.log.debug("cannot record which processes use GPUs: " + to_line(kept.error()));
  return processes;
}

void OutsideWatch::refresh(const gpu::Here& here) {
  const std::string& state = context_.paths.state;
  const gpu::Asked asked = gpu::asked_of(inventory_, here);
  auto read = [&] {
    auto told = gpu::read_computing(state, asked);
    const bool any = told.has_value();
    if (any) known_ = *std::move(told);
    return any;
  };
  if (read()) return;
  auto lock = gpu::lock_computing(state);  // ask even without the lock
  if (lock.ok() && read()) return;
  auto use = try_nvml_use(context_, inventory_, kOutsidePatience);
  if (use.ok()) {
    known_ = keep_computing(context_, inventory_, here, *use);
    return;
  }
  until_ = Clock::now() + kLeftAlone;
  if (warned_) return;
  warned_ = true;
  context_.log.warn("cannot find out which other processes use GPUs: " + to_line(use.error()) +
                    ", ignoring");
}

gpu::Outside OutsideWatch::look() {
  auto here = gpu::look_around();
  if (!here.ok()) return {};
  if (gpu::find_nvml(inventory_) != nullptr && Clock::now() >= until_) {
    until_ = Clock::now() + gpu::kBelieved;
    refresh(*here);
  }
  std::vector<gpu::Computing> all = known_;
  gpu::add_amd_computing(inventory_, gpu::see_process, all);
  return {all, {gpu::see_process, here->pid_space}};
}

}  // namespace berth::engine
