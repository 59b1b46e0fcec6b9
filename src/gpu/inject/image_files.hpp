// SPDX-License-Identifier: Apache-2.0
// What an image brings with it for the driver's libraries, by names alone: nothing of it is opened
// for reading, and what a name was may have changed when the container is made.
#pragma once

#include <string>

#include "gpu/grant/user_mounts.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/driver_files.hpp"

namespace berth::gpu {

struct ImageFiles {
  /// `musl`, and of `libraries` each libcuda.so.1 that LD_LIBRARY_PATH leads to before the loader's
  /// cache is asked, but for those in mounts and those that a compat package is left to bring.
  scan::DriverFiles driver;
  bool compat = false;  ///< there is a name that a compat package has
};

/// Looks into the directory `rootfs`; what cannot be found is not there.
ImageFiles look_at_image(const std::string& rootfs, const oci::Spec& spec,
                         bool forward_compatibility);

/// Of the links of that directory; where it cannot be looked into, every path is its own.
RealPath real_path_in(const std::string& rootfs);

}  // namespace berth::gpu
