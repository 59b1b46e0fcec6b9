// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::engine {

/// The memory limits of a container on each of its GPUs, in bytes.
struct GpuMemory {
  uint64_t most = 0;                  ///< an allocation beyond it fails
  std::optional<uint64_t> kept = {};  ///< protected from the allocations of other containers

  bool operator==(const GpuMemory&) const = default;
};
template <class V>
void fields(V& v, GpuMemory& m) {
  v.required("most", m.most);
  v.optional("kept", m.kept);
}

/// "10G" is `most`; "10G,8G" is `most` and `kept`. Errors: usage.
Result<GpuMemory> parse_gpu_memory(std::string_view text);
/// "25", "25%": 1 to 100. Errors: usage.
Result<uint32_t> parse_gpu_cores(std::string_view text);

/// The device memory regions that the kernel can limit, with their sizes in bytes: the lines of
/// dmem.capacity, "drm/0000:03:00.0/vram0 17163091968", "nvidia/0000:1b:00.0/vidmem 85520809984".
/// Documentation/admin-guide/cgroup-v2.rst "DMEM"
using MemoryRegions = std::map<std::string, uint64_t>;
MemoryRegions parse_memory_regions(std::string_view capacity);  ///< Pure. Other lines are skipped.

/// The regions of this machine, or of a synthetic driver's tree. Empty if the kernel has no dmem
/// controller. Errors: io.
Result<MemoryRegions> memory_regions_of(const gpu::Inventory& inventory);

/// Whether a region covers the whole memory of this GPU.
bool has_region(const gpu::Gpu& gpu, const MemoryRegions& regions);
/// Whether an NVIDIA GPU has no region.
bool lacks_region(const gpu::Inventory& inventory, const MemoryRegions& regions);

/// The files of the container's cgroup and their contents: "dmem.max", "dmem.min".
/// Errors: unsupported (a part of a GPU; a GPU that has no region here), usage (no GPU, or more
/// memory than the GPU has). Pure.
Result<std::map<std::string, std::string>> limit_gpu_memory(
    const GpuMemory& wanted, const std::vector<gpu::Selected>& selected,
    const MemoryRegions& regions);

}  // namespace berth::engine
