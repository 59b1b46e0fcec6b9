// SPDX-License-Identifier: Apache-2.0
// The parts of gather(), one per subject. `root` is the root of the machine, or of a synthetic
// tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/inventory/driver_root.hpp"
#include "node/profile.hpp"
#include "scan/loader.hpp"

namespace berth::node {

/// At most `max_bytes` from the start of a file of the machine; empty if it does not exist.
std::string start_of(const gpu::DriverRoot& root, const std::string& path, size_t max_bytes);

/// The kernel's release and abilities. With `running`, abilities that files do not show are probed
/// in the running kernel.
///
///   overlay, erofs, squashfs   file systems: available, or in a loadable module
///   fuse                       /dev/fuse exists
///   userns                     ordinary users may make user namespaces
///   user-overlay               ordinary users may mount an overlay in their user namespaces
///   cgroup2                    the unified hierarchy is mounted
///   seccomp, seccomp-notify    filters of system calls, and a process that answers for them
///   landlock, io_uring         probed in the running kernel
///
/// Source: filesystems(5), user_namespaces(7), kernel overlayfs.rst, seccomp(2), landlock(7),
/// io_uring_setup(2).
Kernel gather_kernel(const gpu::DriverRoot& root, bool running);

/// "infiniband", "roce", "iwarp", "efa", "opa" from /sys/class/infiniband by driver and link layer,
/// "slingshot" from /sys/class/cxi; sorted.
std::vector<std::string> gather_fabric(const gpu::DriverRoot& root);

/// The libraries that the host's loader finds for native programs; nothing without a cache.
std::vector<scan::LoaderEntry> loader_entries(const gpu::DriverRoot& root);

/// The MPI libraries in `entries`, by SONAME.
std::vector<Mpi> mpi_of(const std::vector<scan::LoaderEntry>& entries);

/// "glibc 2.36" or "musl".
std::string gather_libc(const gpu::DriverRoot& root, const std::vector<scan::LoaderEntry>& entries);
/// The version in the bytes of glibc's libc.so.6: "2.36".
std::string glibc_version(std::string_view bytes);

/// The version of ROCm below /opt/rocm: "6.2.0".
std::string gather_rocm(const gpu::DriverRoot& root);

}  // namespace berth::node
