// SPDX-License-Identifier: Apache-2.0
// The driver's libraries, programs, sockets and configuration files below a root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The capabilities that a library belongs to by its name without ".so…"; empty for a library that
/// is not the driver's.
std::vector<std::string> library_capabilities(std::string_view base);

/// "libcuda.so.570.133.20" → "570.133.20"; empty when no version of a driver follows ".so.".
std::string_view driver_version_of(std::string_view file_name);

/// Fills files, driver.library_version and problems. Directories come from the root's loader cache,
/// its ld.so.conf, and the places of the distributions. Of the versions found, that of the loaded
/// module wins, else the newest.
Result<void> read_driver_files(const DriverRoot& root, Inventory& inventory);

/// The directories below `root` that read_driver_files() looks into, in its order, there or not.
Result<std::vector<std::string>> searched_directories(const DriverRoot& root);

}  // namespace berth::gpu
