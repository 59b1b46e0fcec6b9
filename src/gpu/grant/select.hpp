// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// A GPU, or one MIG slice of it.
struct Selected {
  const Gpu* gpu = nullptr;
  const MigDevice* slice = nullptr;
};

/// What the request names, by index, in the order of the inventory, each once. A GPU in MIG mode
/// cannot be granted whole: all and a count take its slices, each for one.
/// Pointers lead into `inventory`.
/// Errors: not_found (no driver, no such GPU), usage (too many; an ambiguous id; a GPU in MIG
/// mode).
Result<std::vector<Selected>> select(const Request& request, const Inventory& inventory);

/// "GPU-…", "MIG-…", else "0" or "0:1": as programs and people name it.
std::string name_of(const Selected& selected);

}  // namespace berth::gpu
