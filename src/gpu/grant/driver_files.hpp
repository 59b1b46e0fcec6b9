// SPDX-License-Identifier: Apache-2.0
// Whether the files of NVIDIA's driver suffice for what a container asks for (docs/decisions/0190).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Whether any of `capabilities` is among those of a container.
bool has_any(const std::vector<std::string>& capabilities, const std::set<std::string>& granted);

/// Checks that the driver's files are those of the loaded module. A package upgrade replaces the
/// files but not the module: every CUDA call would fail with a version mismatch inside of the
/// container, where the user cannot see the cause.
/// Errors: not_found (no usable files), unsupported (another version).
Result<void> check_versions(const Inventory& inventory);

/// Checks that the driver has the library that the capabilities of a container are about: libcuda
/// for `compute` and `video`, NVML for `utility` alone.
/// Errors: not_found, with the file that cannot be used.
Result<void> check_needed(const Inventory& inventory, const std::set<std::string>& granted);

/// Adds one warning if the driver has unusable files that the capabilities want.
void warn_of_lost(const Inventory& inventory, const std::set<std::string>& granted,
                  std::vector<std::string>& warnings);

}  // namespace berth::gpu
