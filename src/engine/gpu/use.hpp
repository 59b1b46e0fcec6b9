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

/// How busy a GPU is, or a slice or partition of one: with all who use it, because nobody tells
/// containers apart.
struct GpuUse {
  std::string name;  ///< as `berth gpu list` and --gpus device= have it: "0", "0:1"
  std::optional<uint32_t> busy_percent;  ///< none for a slice or partition
  std::optional<uint64_t> used_bytes;
  std::optional<uint64_t> total_bytes;
};

/// How busy NVIDIA's GPUs are; no GPU where there is no NVML. Nothing where it does not answer,
/// with a warning.
std::optional<gpu::Uses> nvml_use(const Context& context, const gpu::Inventory& inventory);
/// The same. Errors: those of gpu::ask_nvml_use().
Result<gpu::Uses> try_nvml_use(const Context& context, const gpu::Inventory& inventory,
                               std::chrono::milliseconds deadline);

/// Paths of the nodes that the configuration of a container's last start gives it, and of what is
/// bound; none where it was never started.
std::set<std::string> nodes_given(const Context& context, const ContainerSummary& container);

/// The GPUs of each container, by its id; one that has none is absent. Where no container has
/// any this costs no more than reading their configurations.
/// Errors: those of list_gpus(). A NVML that does not answer is a warning.
Result<std::map<std::string, std::vector<GpuUse>>> gpu_use(
    const Context& context, const std::vector<ContainerSummary>& containers);

/// The GPUs of `inventory` whose nodes are among `nodes`, the paths of a container's devices; of a
/// GPU that is cut into slices or partitions those. Pure.
std::vector<GpuUse> gpus_of(const std::set<std::string>& nodes, const gpu::Inventory& inventory,
                            const gpu::Uses& use);

}  // namespace berth::engine
