// SPDX-License-Identifier: Apache-2.0
// The parts of gather(), each for one subject. `root` is the machine's, or stands for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "node/profile.hpp"
#include "scan/loader_cache.hpp"

namespace berth::node {

/// At most `max_bytes` from the start of a file of the machine; empty where there is none.
std::string start_of(const gpu::DriverRoot& root, const std::string& path, size_t max_bytes);

/// Release and abilities. With `running` the kernel that runs is asked too what its files do not
/// tell.
///
///   overlay, erofs, squashfs   file systems: there, or in a module that can be loaded
///   fuse                       /dev/fuse is there
///   userns                     ordinary users may make user namespaces
///   user-overlay               and mount an overlay in them
///   cgroup2                    the unified hierarchy is mounted
///   seccomp, seccomp-notify    filters of system calls, and a process that answers for them
///   landlock, io_uring         asked of the kernel that runs
///
/// Source: filesystems(5), user_namespaces(7), kernel overlayfs.rst, seccomp(2), landlock(7),
/// io_uring_setup(2).
Kernel gather_kernel(const gpu::DriverRoot& root, bool running);

/// "infiniband", "roce", "iwarp", "efa", "opa" of /sys/class/infiniband by driver and link layer,
/// "slingshot" of /sys/class/cxi; sorted.
std::vector<std::string> gather_fabric(const gpu::DriverRoot& root);

/// What the host's loader finds for programs of this machine; nothing where it has no cache.
std::vector<scan::LoaderEntry> loader_entries(const gpu::DriverRoot& root);

/// Those that are MPI libraries, by SONAME.
std::vector<Mpi> mpi_of(const std::vector<scan::LoaderEntry>& entries);

/// "glibc 2.36" or "musl".
std::string gather_libc(const gpu::DriverRoot& root, const std::vector<scan::LoaderEntry>& entries);
/// Of the bytes of glibc's libc.so.6, which says its version: "2.36".
std::string glibc_version(std::string_view bytes);

/// The version of ROCm below /opt/rocm: "6.2.0".
std::string gather_rocm(const gpu::DriverRoot& root);

std::vector<NodeGpu> gpus_of(const gpu::Inventory& inventory);

}  // namespace berth::node
