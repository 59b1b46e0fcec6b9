// SPDX-License-Identifier: Apache-2.0
// Facts about a GPU that sysfs has by PCI address, and the GPUs that have only a DRM interface:
// AMD's (with KFD) and Intel's. Source: Linux Documentation/gpu/amdgpu.
#pragma once

#include <string>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {

/// Sorts "0000:1b:00.0" as numbers, so that domains of eight digits come last.
bool pci_before(const std::string& left, const std::string& right);

/// Fills numa_node, drm_nodes and drm_links of a GPU with a pci_address.
void read_pci_facts(const DriverRoot& root, const NodeFinder& nodes, Gpu& gpu);

/// Appends AMD's and Intel's GPUs to `gpus`, and fills amd_control_nodes and problems. Errors: io.
Result<void> read_drm_devices(const DriverRoot& root, const NodeFinder& nodes,
                              Inventory& inventory);

}  // namespace berth::gpu
