// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/use.hpp"

namespace berth::engine {

/// The utilization of a GPU, or of a slice or partition, by all its users: drivers do not report it
/// per container.
struct GpuUse {
  std::string name;                      ///< as in `berth gpu list` and --gpus device=: "0", "0:1"
  std::optional<uint32_t> busy_percent;  ///< none for a slice or partition
  std::optional<uint64_t> used_bytes;
  std::optional<uint64_t> total_bytes;
};

/// The utilization of NVIDIA's GPUs; empty without NVML. Nothing, with a warning, if NVML does not
/// answer.
std::optional<gpu::Uses> nvml_use(const Context& context, const gpu::Inventory& inventory);
/// The same, with an error instead of the warning. Errors: those of gpu::ask_nvml_use().
Result<gpu::Uses> try_nvml_use(const Context& context, const gpu::Inventory& inventory,
                               std::chrono::milliseconds deadline);

/// Paths of the nodes and bind mounts in the configuration of a container's last start; none if it
/// was never started.
std::set<std::string> nodes_given(const Context& context, const ContainerSummary& container);

/// The GPUs of each container, by its id; a container without GPUs is absent. If no container has
/// any, this costs only reading their configurations.
/// Errors: those of list_gpus(). An NVML that does not answer is only a warning.
Result<std::map<std::string, std::vector<GpuUse>>> gpu_use(
    const Context& context, const std::vector<ContainerSummary>& containers);

/// The GPUs of `inventory` with a node in `nodes`, the paths of a container's devices. For a GPU
/// with slices or partitions, the slices or partitions with a node there. Pure.
std::vector<GpuUse> gpus_of(const std::set<std::string>& nodes, const gpu::Inventory& inventory,
                            const gpu::Uses& use);

}  // namespace berth::engine
