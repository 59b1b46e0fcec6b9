// SPDX-License-Identifier: Apache-2.0
// The driver's files below a root: libraries, programs, firmware, sockets, configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// Fills files, driver.library_version and problems. Reads driver.module_version: only files of
/// that version count. `of_root` is the result of services_of_root(). Errors: those of
/// read_libraries().
Result<void> read_driver_files(const DriverRoot& root, const Configured& configured,
                               const std::vector<std::string>& of_root, Inventory& inventory);

// The files of NVIDIA's driver below /proc/driver, of which containers see a part. Source:
// open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv-caps.c.

/// The rows of nvidia-caps/mig-minors ("gpu0/gi7/access 66") for devices of `inventory`, each as a
/// part of that file, with its GPU and slice. The driver's table has rows for every possible
/// instance; rows that are not about these devices are left out.
std::vector<ProcText> mig_minor_rows(std::string_view table, const Inventory& inventory);

/// Fills proc_texts, from gpus. Leaves out unreadable files. Errors: io.
Result<void> read_proc_texts(const DriverRoot& root, Inventory& inventory);

}  // namespace berth::gpu
