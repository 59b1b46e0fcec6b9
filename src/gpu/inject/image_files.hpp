// SPDX-License-Identifier: Apache-2.0
// Files of an image that matter for the driver's libraries. Only names are looked up, no file is
// opened for reading: a name may lead to another file when the container is made.
#pragma once

#include <string>

#include "gpu/grant/user_mounts.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/driver_files.hpp"

namespace berth::gpu {

struct ImageFiles {
  /// Only two members are set: `musl`, and `libraries` with each libcuda.so.1 that LD_LIBRARY_PATH
  /// finds before the loader's cache. Files in mounts and in a compat package are left out.
  scan::DriverFiles driver;
  bool compat = false;  ///< a path of a compat package exists
};

/// Looks into the directory `rootfs`; an unreadable path counts as missing.
ImageFiles look_at_image(const std::string& rootfs, const oci::Spec& spec,
                         bool forward_compatibility);

/// Resolves links in the directory `rootfs`; if it cannot be read, paths are unchanged.
RealPath real_path_in(const std::string& rootfs);

}  // namespace berth::gpu
