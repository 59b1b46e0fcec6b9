// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The file system of a path, and how it is mounted there.
struct FileSystem {
  int64_t type = 0;  ///< a *_MAGIC
  uint64_t free_bytes = 0;
  uint64_t total_inodes = 0;  ///< 0: the file system does not count inodes
  uint64_t free_inodes = 0;
  bool read_only = false;
  bool no_exec = false;
  bool no_suid = false;
  bool no_dev = false;
};

/// Errors: not_found, denied. statfs(2)
Result<FileSystem> file_system_of(const std::string& path);

/// "ext4", "xfs", "nfs", …; "type 0x1234" for an unknown one.
std::string file_system_name(int64_t type);

/// Whether this process may access `path` with `mode` (R_OK, W_OK, X_OK) under its effective ids.
/// Does not open the file: the driver of a device is not involved, but the device control group is
/// checked.
/// Errors: not_found, denied (EACCES by mode; EPERM by a device control group), io.
/// faccessat(2) AT_EACCESS
Result<void> check_access(const Fd& dir, const std::string& path, int mode);

/// Whether this process's device cgroup forbids reading the node `path`. Reading is enough to know:
/// it is the only use of a GPU's capability node, and no cgroup allows a device without reading.
/// Does not open the node, so no device wakes up: access(2) checks the cgroup too, and only the
/// cgroup gives EPERM (a file mode that forbids reading gives EACCES). False in doubt.
bool is_denied_by_cgroup(const std::string& path);

}  // namespace berth::sys
