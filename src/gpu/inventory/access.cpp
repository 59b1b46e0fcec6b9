// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/access.hpp"

#include <array>

#include "sys/device_access.hpp"

namespace berth::gpu {
namespace {

bool is_denied(const Gpu& gpu) {
  return !gpu.node.host_path.empty() && sys::is_denied_by_cgroup(gpu.node.host_path);
}

}  // namespace

uint32_t leave_out_denied(Inventory& inventory) {
  auto denied = static_cast<uint32_t>(std::erase_if(inventory.gpus, is_denied));
  if (denied == 0) return 0;
  std::array<uint32_t, 3> next{};  // one counter for each vendor
  for (Gpu& gpu : inventory.gpus) gpu.index = next[static_cast<size_t>(gpu.vendor)]++;
  inventory.left_out += denied;
  return denied;
}

}  // namespace berth::gpu
