// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"

namespace berth::engine {

/// The nodes that --device names by their paths, a directory's each: with the mode and owner that
/// the host has them with, and the path that links lead to. Errors: not_found, usage (no device),
/// in docker's words.
Result<std::vector<oci::DeviceNode>> named_nodes(const std::vector<HostDevice>& devices);

/// Those of --device that count: where the site says which GPUs `request` has, none of a GPU does,
/// wherever links lead now. Errors: as named_nodes().
Result<std::vector<oci::DeviceNode>> nodes_by_hand(const RunRequest& request);

/// All nodes of the host's /dev, as --privileged gives them: but consoles, ptys and what every
/// container has of its own. An ordinary user gets those that he may open. Errors: io.
Result<std::vector<oci::DeviceNode>> all_nodes(Identity identity);

/// Whether `node` belongs to a GPU or to its driver: by its place, or by its major number.
bool is_gpu_node(const oci::DeviceNode& node);

/// Takes out of `nodes` what `withheld` has, by number. Gives what was taken.
std::vector<oci::DeviceNode> take_out(std::vector<oci::DeviceNode>& nodes,
                                      const std::vector<gpu::Node>& withheld);

/// "c 195:* rwm" as rules of the device cgroup.
std::vector<oci::DeviceRule> device_rules_of(const std::vector<std::string>& rules);

}  // namespace berth::engine
