// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The highest version of glibc that the driver's libraries for computing and for managing GPUs
/// require ("2.17"): an image into which they are bound needs that version. Empty: unknown.
std::string glibc_needed(const Inventory& inventory);

}  // namespace berth::gpu
