// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The kind of Berth's own CDI names: "berth.dev/gpu=GPU-…". Berth always resolves them by its
/// inventory; a CDI file defines them for other runtimes only.
inline constexpr std::string_view kOwnCdiKind = "berth.dev/gpu=";

/// Moves to `request` those of `names` that name GPUs: all of kOwnCdiKind, and others that no CDI
/// file defines: "nvidia.com/gpu=0" is GPU 0. `defined`: the names that the files define, sorted;
/// `source`: where the names come from, for messages.
void take_plain_gpus(std::vector<std::string>& names, const std::vector<std::string>& defined,
                     const std::string& source, Request& request);

/// Applies the limits and the policy's withheld GPUs to CDI names of GPUs ("nvidia.com/gpu=0",
/// "amd.com/gpu=all"), as for --gpus: "all" becomes the names of the reachable GPUs, and the name
/// of an unreachable one is refused. Names of other kinds are kept unless `withheld` (gpu.never)
/// contains them literally. Indices in CDI files count the GPUs of `machine`; `job` is the machine
/// without the GPUs that the job cannot open.
/// Errors: denied, and those of select().
Result<std::vector<std::string>> reachable_names(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& withheld,
                                                 const Request& request, const Inventory& machine,
                                                 const Inventory& job);

/// Restricts the choice by the policy, by the caller's job, and to the GPUs that the caller can
/// open.
/// Pure. Errors: those of reachable_names().
Result<void> narrow(Choice& choice, const Machine& machine);

/// The nodes of GPUs that no container may get here: GPUs that the policy withholds (gpu.never)
/// and, in a job, GPUs outside of the job. Used for nodes that are requested by path, and for a
/// container that requests all nodes. `choice` is the result of choose(). Pure.
std::vector<Node> nodes_out_of_reach(const Choice& choice, const Machine& machine);

}  // namespace berth::gpu
