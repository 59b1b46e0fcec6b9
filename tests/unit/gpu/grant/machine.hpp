// SPDX-License-Identifier: Apache-2.0
// Small machines for tests of what is granted.
#pragma once

#include <string>
#include <vector>

#include "gpu/grant/select.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

constexpr uint64_t kGib = uint64_t{1} << 30;

inline Gpu make_gpu(Vendor vendor, uint32_t index) {
  Gpu gpu;
  gpu.vendor = vendor;
  gpu.index = index;
  gpu.minor = 7 - index;
  gpu.uuid = "GPU-" + std::string(index < 2 ? "aa" : "b") + std::to_string(index) + "-0000";
  gpu.pci_address = "0000:" + std::to_string(10 + index) + ":00.0";
  gpu.node.path = "/dev/nvidia" + std::to_string(gpu.minor);
  return gpu;
}

inline Inventory gpu_machine(uint32_t count, Vendor vendor = Vendor::nvidia) {
  Inventory inventory;
  inventory.driver = {"570.133.20", "570.133.20", "12.8", "nvml"};
  for (uint32_t i = 0; i < count; ++i) inventory.gpus.push_back(make_gpu(vendor, i));
  return inventory;
}

/// GPU 1 has `slices` slices.
inline Inventory sliced_machine(uint32_t slices) {
  Inventory inventory = gpu_machine(2);
  inventory.gpus[1].mig_mode = true;
  for (uint32_t i = 0; i < slices; ++i) {
    MigDevice slice;
    slice.index = i;
    slice.gpu_instance = 7 + i;
    slice.uuid = "MIG-c" + std::to_string(i);
    inventory.gpus[1].mig.push_back(slice);
  }
  return inventory;
}

/// Every GPU of `machine`, none of them cut into slices.
inline std::vector<Selected> whole_gpus(const Inventory& machine) {
  std::vector<Selected> all;
  for (const Gpu& gpu : machine.gpus) all.push_back({&gpu});
  return all;
}

}  // namespace berth::gpu
