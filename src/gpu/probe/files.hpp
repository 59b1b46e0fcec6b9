// SPDX-License-Identifier: Apache-2.0
// The driver's files below a root: libraries, programs, firmware, sockets, configuration.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Fills files, driver.library_version and problems. Reads driver.module_version: only its files
/// count. `of_root` is the result of services_of_root(). Errors: as read_libraries().
Result<void> read_driver_files(const DriverRoot& root, const Configured& configured,
                               const std::vector<std::string>& of_root, Inventory& inventory);

}  // namespace berth::gpu
