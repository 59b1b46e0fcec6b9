// SPDX-License-Identifier: Apache-2.0
// The driver's files in one directory, as in nvidia-docker 1 and Mesos: bin, lib (32-bit) and
// lib64.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "gpu/grant/grant.hpp"

namespace berth::gpu {

/// The absolute path of a directory with the grant's files below kDriverDirectory, made once below
/// `<volume_dir>/nvidia_driver_<version>`: by hard links where possible, else by copies (reflinks
/// where the file system can). Making one removes volumes of other versions that no process has
/// mounted, except those that `is_kept` keeps (it may be empty). Errors: io (no space), denied.
Result<std::string> find_or_make_volume(
    const Grant& grant, const std::string& volume_dir,
    const std::function<bool(const std::string& name)>& is_kept);

}  // namespace berth::gpu
