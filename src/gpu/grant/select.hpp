// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/occupancy.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Chooses the GPUs for `request`, each once. Named devices are in the order of the request; those
/// of `all` and a count are in the order of the inventory, or of the job if a limit has an order.
/// All are of one vendor. A GPU in MIG mode or in partitions cannot be granted whole: `all` and a
/// count take its parts, and each part counts as one. Excludes everything outside of the request's
/// limits and everything that the policy withholds. A count takes the least used GPUs (pick.hpp) of
/// those that have the request's traits and are not held exclusively. Pointers point into
/// `inventory`.
/// Errors: not_found (no driver, no such GPU), usage (too many; an ambiguous id; a GPU in MIG mode
/// or in partitions), denied (outside of a limit, or withheld; names the source of the limit), busy
/// (held; names the holder; waiting may help).
Result<std::vector<Selected>> select(const Request& request, const Inventory& inventory,
                                     const Occupancy& occupancy = {});

/// The GPUs that `request` may get, whether held or not, and how many of them it needs: select()
/// chooses from these. Errors: those of select() except busy.
struct Wanted {
  std::vector<Selected> candidates;
  size_t count = 0;
};
Result<Wanted> wanted_of(const Request& request, const Inventory& inventory);

/// The vendor that `request` is about: that of the GPUs it names, else the first one in the
/// machine.
Vendor vendor_of(const Request& request, const Inventory& inventory);

/// The GPU that `id` names: an index ("0", "0:1"), an id or an unambiguous prefix of one, "MIG-…",
/// "MIG-GPU-<uuid>/<gi>/<ci>", a PCI address. Errors: not_found, usage.
Result<Selected> find_gpu(const std::string& id, Vendor vendor, const Inventory& inventory);

/// The vendor of a CDI name: "nvidia.com/gpu=…", "amd.com/gpu=…".
std::optional<Vendor> vendor_of_cdi_name(std::string_view name);

/// Converts the device part of a CDI name for find_gpu(): removes the prefix of "gpu0", "mig0:1"
/// and "part0:1", which `berth cdi generate` and NVIDIA's toolkit write; other strings are
/// unchanged.
std::string id_of_cdi_device(std::string_view device);

/// The keys of the GPUs in `names` (gpu.never of the policy); a whole GPU includes its slices. A
/// CDI name such as "nvidia.com/gpu=0" stands for the GPU that it names: otherwise another name of
/// that GPU would still grant it. Ignores names of missing GPUs, and other CDI names.
std::vector<std::string> keys_of(const std::vector<std::string>& names, const Inventory& inventory);

}  // namespace berth::gpu
