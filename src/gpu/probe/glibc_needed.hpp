// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The highest version of glibc that the driver's libraries ask for, of those for computing and for
/// looking after GPUs ("2.17"): where they are bound into an image, its glibc has to be as new.
/// Empty: there are none, or none of them says.
std::string glibc_needed(const Inventory& inventory);

}  // namespace berth::gpu
