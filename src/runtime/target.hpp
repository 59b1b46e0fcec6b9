// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, before it enters its root. Capabilities: all of its user
// namespace. Hostile: every name and link below the root; the paths come from the config.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::runtime {

enum class TargetType { directory, file };
enum class MakeIn { any_mount, mount_of_root };

/// Opens `path` of the container as a place to mount on, made (with its parents) when missing.
/// Links are followed inside `root` only, a dangling one to where it points.
/// Errors: not_found never; denied (also: it would have to be made in a mount that was not to be
/// changed), io (a read-only file system), exists (a race with another).
Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path, TargetType type,
                            MakeIn where = MakeIn::any_mount);

/// The same for a place that must be a real directory under its own name.
/// Errors: also denied (a symbolic link, or no directory).
Result<sys::Fd> open_exact_target(const sys::Fd& root, const std::string& path);

/// Errors: denied (`place` lies in another mount than `root`).
Result<void> check_same_mount(const sys::Fd& place, const sys::Fd& root, const std::string& path);

/// The directories in which nodes and links are made. It remembers the last one: eleven of them lie
/// in /dev, and nothing is mounted while they are made.
class Parents {
 public:
  struct Place {
    const sys::Fd& directory;  ///< until the next call
    std::string name;
  };
  /// The directory of `path`, made when missing.
  /// Errors: usage (a path that ends in ".." or is the root).
  Result<Place> open(const sys::Fd& root, const std::string& path);

 private:
  std::string path_;
  sys::Fd directory_;
};

}  // namespace berth::runtime
