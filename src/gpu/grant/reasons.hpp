// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/grant/grant.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Adds a reason for everything in `grant` that has no reason yet, and for every file and node of
/// `inventory` that is not in `grant`. Pure.
void complete_reasons(const Inventory& inventory, Grant& grant);

}  // namespace berth::gpu
