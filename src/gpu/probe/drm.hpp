// SPDX-License-Identifier: Apache-2.0
// What sysfs tells of a GPU by its PCI address, and the GPUs that have no other interface than
// DRM's: AMD's (with KFD) and Intel's.
// Source: Linux Documentation/gpu/amdgpu, drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {

/// A node of KFD's topology that is a GPU, or a partition of one.
struct KfdNode {
  uint32_t render_minor = 0;
  uint64_t unique_id = 0;  ///< 0: the GPU has none
  std::string pci_address;
  uint32_t partition = 0;    ///< 0 where the GPU is not partitioned
  std::string architecture;  ///< "gfx90a"
};

/// "key value" lines; what is not a number is left out.
std::map<std::string, uint64_t> parse_properties(std::string_view text);

/// Of nodes/<N>/properties; nothing for a processor, which is a node too.
std::optional<KfdNode> parse_kfd_node(std::string_view properties);

/// Sorts "0000:1b:00.0" as numbers, so that domains of eight digits come last.
bool pci_before(const std::string& left, const std::string& right);

/// Fills numa_node, drm_nodes and drm_links of a GPU whose pci_address is set.
void read_pci_facts(const DriverRoot& root, const NodeFinder& nodes, Gpu& gpu);

/// Adds AMD's and Intel's GPUs behind those that are there, amd_control_nodes and
/// problems. Errors: io.
Result<void> read_drm_devices(const DriverRoot& root, const NodeFinder& nodes,
                              Inventory& inventory);

}  // namespace berth::gpu
