// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/grant/sources.hpp"

namespace berth::gpu {

/// Moves to `request` those of `names` that no CDI file defines and that are GPUs all the same:
/// "nvidia.com/gpu=0" is the GPU 0. `defined`: the names that the files define, sorted; `source`:
/// where the names come from, for messages.
void take_plain_gpus(std::vector<std::string>& names, const std::vector<std::string>& defined,
                     const std::string& source, Request& request);

/// CDI names of GPUs ("nvidia.com/gpu=0", "amd.com/gpu=all"), held to the limits and to what policy
/// withholds, as --gpus is: "all" becomes the names of what is left of it, another name outside is
/// refused. Names of other kinds pass, but those that `withheld` (gpu.never) has as they are.
/// CDI files count the GPUs of the `machine`; `job` is it without what the job cannot open.
/// Errors: denied, and those of select().
Result<std::vector<std::string>> reachable_names(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& withheld,
                                                 const Request& request, const Inventory& machine,
                                                 const Inventory& job);

/// Holds what was chosen to what policy withholds, to the caller's job and to what he can open.
/// Pure. Errors: those of reachable_names().
Result<void> narrow(Choice& choice, const Machine& machine);

}  // namespace berth::gpu
