// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/processes.hpp"
#include "gpu/probe/use.hpp"

/// The processes that use each GPU now, for `gpu top` and `metrics`.
namespace berth::engine {

/// A process that has a GPU open.
struct GpuProcess {
  int64_t pid = 0;
  std::string command;  ///< process name; empty without permission to see it
  std::optional<uint32_t> user;
  std::optional<gpu::Lease> lease;  ///< of its container; none: not in a container with a lease
  std::optional<uint64_t> used_bytes;
};

/// A GPU, or a slice or partition of one. NVML reports the values of NVIDIA's GPUs, the kernel
/// those of AMD's. Unknown values are none.
struct GpuState {
  std::string index;  ///< "0", "0:1"
  std::string id;     ///< "GPU-…", "MIG-…", else the address
  std::string model;
  std::optional<uint32_t> busy_percent;  ///< none for a slice or partition
  std::optional<gpu::MemoryUse> memory;
  std::optional<uint32_t> celsius;
  std::optional<uint32_t> milliwatts;
  std::vector<gpu::KnownLease> leases;
  std::optional<std::vector<GpuProcess>> processes;
};

struct GpuTop {
  std::vector<GpuState> gpus;
  std::optional<size_t> waiting;  ///< waiting containers; none: the ledger cannot be read
  bool synthetic = false;
};

/// Errors: those of list_gpus(). An NVML that does not answer, or a ledger that cannot be read, is
/// only a warning.
Result<GpuTop> gpu_top(const Context& context);

/// Combines the parts. Pure.
std::vector<GpuState> gpu_states(const gpu::Inventory& inventory, const gpu::Uses& use,
                                 const gpu::Holders& holders, const gpu::ProcessView& view);

/// The name of a lease's container, or the beginning of the container's id.
std::string container_of(const gpu::Lease& lease);

}  // namespace berth::engine
