// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"

namespace berth::engine {

/// The nodes that --device names by path, or all nodes of a directory, with the host's mode and
/// owner; links are resolved. Errors: not_found, usage (not a device), with docker's messages.
Result<std::vector<oci::DeviceNode>> named_nodes(const std::vector<HostDevice>& devices);

/// The nodes of --device that apply. If the site decides the GPUs of `request`, leaves out GPU
/// nodes, after resolving links. Errors: as named_nodes().
Result<std::vector<oci::DeviceNode>> nodes_by_hand(const RunRequest& request);

/// All nodes of the host's /dev, for --privileged, except consoles, ptys, and nodes that every
/// container has of its own. An ordinary user gets only nodes that this user may open. Errors: io.
Result<std::vector<oci::DeviceNode>> all_nodes(Identity identity);

/// Whether `node` belongs to a GPU or its driver: by its path, or by its major number.
bool is_gpu_node(const oci::DeviceNode& node);

/// Removes the nodes in `withheld` from `nodes`, comparing device numbers. Returns the removed
/// nodes.
std::vector<oci::DeviceNode> take_out(std::vector<oci::DeviceNode>& nodes,
                                      const std::vector<gpu::Node>& withheld);

/// Turns rules such as "c 195:* rwm" into rules of the device cgroup.
std::vector<oci::DeviceRule> device_rules_of(const std::vector<std::string>& rules);

}  // namespace berth::engine
