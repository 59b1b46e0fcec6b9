// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::plan {

enum class Propagation { shared, slave, private_, unbindable };

struct PropagationChange {
  Propagation type = Propagation::private_;
  bool recursive = false;
};

/// The flags of a mount for mount_setattr(2) (MOUNT_ATTR_*): bits to set and to clear on the mount
/// alone, and bits to set and to clear on the mount and all mounts below it.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t clear = 0;
  uint64_t recursive_set = 0;
  uint64_t recursive_clear = 0;
  std::optional<PropagationChange> propagation;
  bool operator==(const MountAttributes&) const;
};

/// How a bind treats symbolic links, with crun's names of the options.
struct BindLinks {
  bool source = false;  ///< src-nofollow: bind a link itself, not its target
  bool target = false;  ///< dest-nofollow: mount over a link itself
  bool copy = false;    ///< copy-symlink: copy a source that is a link
  bool operator==(const BindLinks&) const = default;
};

/// The "options" of a mount, sorted by the system call for them.
struct MountOptions {
  MountAttributes attributes;
  bool bind = false;
  bool recursive_bind = false;
  bool remount = false;
  bool id_map = false;
  bool recursive_id_map = false;
  bool copy_up = false;  ///< tmpcopyup: fill it with the image's content of the target
  BindLinks links;
  std::vector<std::string> data;  ///< unknown options: for the file system
};

/// Sorts `options`. Accepts every list.
/// Source: runtime-spec config.md "Linux mount options".
MountOptions parse_mount_options(const std::vector<std::string>& options);

/// All options that parse_mount_options() does not pass to the file system, sorted.
std::vector<std::string> mount_option_names();

/// "ro,nosuid,nodev" for people.
std::string attribute_names(const MountAttributes& attributes);

}  // namespace berth::plan
