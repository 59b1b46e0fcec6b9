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

/// Opens `path` of the container as a mount point, made (with its parents) when missing. Links are
/// followed inside `root` only, a dangling one to its target.
/// Errors: not_found never; denied (also: it would have to be made in a mount that must not be
/// changed), io (a read-only file system), exists (a race with another process).
Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path, TargetType type,
                            MakeIn where = MakeIn::any_mount);

/// The same for a mount point that must be a real directory under its own name.
/// Errors: also denied (a symbolic link, or no directory).
Result<sys::Fd> open_exact_target(const sys::Fd& root, const std::string& path);

/// The directories in which nodes and links are made. Remembers the last one: eleven of them are in
/// /dev, and nothing is mounted in between.
class Parents {
 public:
  struct Place {
    const sys::Fd& directory;  ///< until the next call
    std::string name;
    /// Not a volume: its content is not the container's.
    bool is_own = false;
  };
  /// The directory of `path`, made when missing, except in a volume. The container's own are the
  /// mount of `root` and `own_dev`, the mount at /dev if there is one.
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
