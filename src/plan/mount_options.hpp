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

/// The flags of a mount, as mount_setattr(2) takes them (MOUNT_ATTR_*): bits to set and to clear on
/// the mount itself, and the same for it with everything below.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t clear = 0;
  uint64_t recursive_set = 0;
  uint64_t recursive_clear = 0;
  std::optional<PropagationChange> propagation;
  bool operator==(const MountAttributes&) const;
};

/// What a bind does with symbolic links, by the words that crun has for it.
struct BindLinks {
  bool source = false;  ///< src-nofollow: a source that is a link is what is bound
  bool target = false;  ///< dest-nofollow: a target that is a link is laid over
  bool copy = false;    ///< copy-symlink: for a source that is a link the same link is made
  bool operator==(const BindLinks&) const = default;
};

/// The "options" of a mount, sorted by the system call that takes them.
struct MountOptions {
  MountAttributes attributes;
  bool bind = false;
  bool recursive_bind = false;
  bool remount = false;
  bool id_map = false;
  bool recursive_id_map = false;
  bool copy_up = false;  ///< tmpcopyup: begin with what the image has in its place
  BindLinks links;
  std::vector<std::string> data;  ///< what no one here knows: the file system's own
};

/// Sorts `options`; every list of words means something.
/// Source: runtime-spec config.md "Linux mount options".
MountOptions parse_mount_options(const std::vector<std::string>& options);

/// All words that parse_mount_options() does not hand to the file system, sorted.
std::vector<std::string> mount_option_names();

/// "ro,nosuid,nodev" for people.
std::string attribute_names(const MountAttributes& attributes);

}  // namespace berth::plan
