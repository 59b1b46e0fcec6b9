// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, before it enters its root. Capabilities: all of its user
// namespace. Hostile: every name and link below the root; the paths come from the config.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

enum class TargetType { directory, file };
enum class MakeIn { any_mount, mount_of_root };

/// Opens `path` of the container as a mount point; makes it and its parents when missing. Follows
/// links inside `root` only; for a dangling link it makes the target of the link. Errors: never
/// not_found; denied (also if it would have to be made in a mount that must not be changed), io (a
/// read-only file system), exists (a race with another process).
Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path, TargetType type,
                            MakeIn where = MakeIn::any_mount);

/// As open_target(), for a mount point that must be a directory, not a link to one.
/// Errors: also denied (a symbolic link, or something else than a directory).
Result<sys::Fd> open_exact_target(const sys::Fd& root, const std::string& path);

/// The directories in which nodes and links are made. Keeps the last directory open: eleven of the
/// nodes and links are in /dev, and nothing is mounted in between.
class Parents {
 public:
  struct Place {
    const sys::Fd& directory;  ///< valid until the next call
    std::string name;
    /// False: the directory is in a volume, whose content does not belong to the container.
    bool is_own = false;
  };
  /// The parent directory of `path`; makes it when missing, except in a volume. The mounts that are
  /// not volumes are the mount of `root` and `own_dev`, the mount at /dev if there is one.
  /// Errors: usage (a path that ends in ".." or is the root), denied (missing in a volume).
  Result<Place> open(const sys::Fd& root, const sys::Fd& own_dev, const std::string& path);

 private:
  std::string path_;
  sys::Fd directory_;
  bool is_own_ = false;
};

/// The error for a file that would have to be made in another mount.
Error lies_in_another_mount(const std::string& path);

}  // namespace berth::runtime
