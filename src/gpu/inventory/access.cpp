// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/access.hpp"

#include <algorithm>

#include "sys/file/file_system.hpp"

namespace berth::gpu {
namespace {

bool is_denied(const Node& node) {
  return !node.host_path.empty() && sys::is_denied_by_cgroup(node.host_path);
}

bool is_part_denied(const Partition& part) {
  return std::ranges::any_of(part.nodes, [](const Node& node) {
    return node.path.starts_with("/dev/dri/renderD") && is_denied(node);
  });
}

bool is_slice_denied(const MigDevice& slice) {
  return std::ranges::any_of(slice.nodes, is_denied);
}

// The node of a partitioned GPU is that of its first partition, which may belong to another job.
bool is_gpu_denied(const Gpu& gpu) {
  return gpu.partitions.empty() && is_denied(gpu.node);
}

}  // namespace

uint32_t leave_out_denied(Inventory& inventory) {
  size_t parts = 0;
  for (Gpu& gpu : inventory.gpus) {
    parts += std::erase_if(gpu.partitions, is_part_denied);
    parts += std::erase_if(gpu.mig, is_slice_denied);
  }
  auto gone = static_cast<uint32_t>(std::erase_if(inventory.gpus, is_gpu_denied));
  auto denied = static_cast<uint32_t>(parts) + gone;
  if (denied == 0) return 0;
  std::array<uint32_t, 3> next{};  // one counter for each vendor
  for (Gpu& gpu : inventory.gpus) gpu.index = next[static_cast<size_t>(gpu.vendor)]++;
  inventory.left_out += gone;
  return denied;
}

Machine look_for_denied(Inventory inventory) {
  Machine machine;
  bool any = std::ranges::any_of(inventory.gpus, [](const Gpu& gpu) {
    return is_gpu_denied(gpu) || std::ranges::any_of(gpu.partitions, is_part_denied) ||
           std::ranges::any_of(gpu.mig, is_slice_denied);
  });
  if (any) machine.with_denied = inventory;
  machine.ours = std::move(inventory);
  if (any) machine.denied = leave_out_denied(machine.ours);
  return machine;
}

}  // namespace berth::gpu
