// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver shows below /proc/driver, to be shown to containers in part.
// Source: open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv-caps.c.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// The rows of nvidia-caps/mig-minors ("gpu0/gi7/access 66") that concern what `inventory` has,
/// each as a part of that file with its GPU and slice. The driver's table counts every instance
/// that there could be; rows of other forms are left out.
std::vector<ProcText> mig_minor_rows(std::string_view table, const Inventory& inventory);

/// Fills proc_texts; gpus must be there. A file that cannot be read is left out. Errors: io.
Result<void> read_proc_texts(const DriverRoot& root, Inventory& inventory);

}  // namespace berth::gpu
