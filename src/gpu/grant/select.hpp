// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/occupancy.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/grant/selected.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// What the request names, each once: devices in the order of the request, all and a count in that
/// of the inventory, or of the job where a limit has one. Of one vendor. A GPU in MIG mode or in
/// partitions cannot be granted whole: all and a count take its parts, each for one. Nothing
/// outside of the request's limits and nothing that policy withholds. A count takes the least used
/// (spread.hpp) of those that have the request's traits and that nobody keeps to himself. Pointers
/// lead into `inventory`.
/// Errors: not_found (no driver, no such GPU), usage (too many; an ambiguous id; a GPU that is
/// cut), denied (outside of a limit, or withheld; the line names who says so), busy (somebody has
/// it: the line names him; who waits may get it).
Result<std::vector<Selected>> select(const Request& request, const Inventory& inventory,
                                     const Occupancy& occupancy = {});

/// What `request` may be given, whoever has it, and how much of that it needs: what select() would
/// choose from. Errors: those of select() but busy.
struct Wanted {
  std::vector<Selected> candidates;
  size_t count = 0;
};
Result<Wanted> wanted_of(const Request& request, const Inventory& inventory);

/// Whose GPUs `request` is about: those that it names, else the first vendor of the machine.
Vendor vendor_of(const Request& request, const Inventory& inventory);

/// The GPU that `id` names: an index ("0", "0:1"), an id or a prefix that one GPU has, "MIG-…",
/// "MIG-GPU-<uuid>/<gi>/<ci>", a PCI address. Errors: not_found, usage.
Result<Selected> find_gpu(const std::string& id, Vendor vendor, const Inventory& inventory);

/// Whose GPUs a CDI name is about: "nvidia.com/gpu=…", "amd.com/gpu=…".
std::optional<Vendor> vendor_of_cdi_name(std::string_view name);

/// What find_gpu() takes for the device of such a name: "gpu0", "mig0:1" and "part0:1", as
/// `berth cdi generate` and NVIDIA's toolkit name devices too, without their word; else `device`.
std::string id_of_cdi_device(std::string_view device);

/// The keys of what `names` (gpu.never of the policy) names; a whole GPU stands for its slices.
/// So does "nvidia.com/gpu=0" for the GPU that it names, for else another name of that GPU would
/// give it. Names of what the machine does not have, and other CDI names, are passed over.
std::vector<std::string> keys_of(const std::vector<std::string>& names, const Inventory& inventory);

}  // namespace berth::gpu
