// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process before it enters its root, and its parent for the mounts
// that need the parent's rights. Capabilities: all of their user namespace. Hostile: every name and
// link below the root; sources and targets of mounts are given by handle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/mount_options.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// A mount that is not attached to a tree yet. Where the kernel has no detached mounts (Linux <
/// 5.2), `detached` is empty and attach() mounts directly on the target from the other members.
struct NewMount {
  sys::Fd detached{};
  std::string type{};  ///< the type of a new file system; empty: a view of an existing mount
  std::string source{};
  std::vector<std::string> data{};  ///< "size=1k", "sync": the file system's options
  const sys::Fd* viewed = nullptr;  ///< the source of a view; has to outlive attach()
  std::string path{};      ///< alternatively: the path of the source of a view, opened only where
                           ///< the kernel needs it
  bool recursive = false;  ///< the view includes all mounts below the source
};

/// Makes a file system of `type`; a source that is an absolute path is opened read-only when
/// `attributes` (MOUNT_ATTR_*) say so.
/// Errors: not_found (no such type), denied, io (an option that the file system does not take, with
/// the kernel's message), never unsupported.
Result<NewMount> make_file_system(const std::string& type, const std::string& source,
                                  const std::vector<std::string>& data, uint64_t attributes);

/// A view of the file or directory that `from` is open at. It is always recursive if this user
/// namespace may not separate the mounts of the tree.
Result<NewMount> make_view(const sys::Fd& from, bool recursive, const std::string& name);

/// As make_view(), of the host's `path`; follows links. It is cloned at once by open_tree(2); on a
/// kernel without that call (Linux < 5.2), attach() binds `path`.
Result<NewMount> make_view_of(const std::string& path, bool recursive);

/// Attaches `mount` with `attributes` to the file or directory that `target` is open at, and
/// returns a handle of the mount. It is never visible without these attributes, except on kernels
/// without mount_setattr (Linux < 5.12).
/// Errors: usage (a directory over a file, or the reverse), denied (an attribute that is locked).
Result<sys::Fd> attach(NewMount mount, const sys::Fd& target,
                       const plan::MountAttributes& attributes, const std::string& name);

/// Changes the attributes of a mount. Restrictions other than "read-only" stay if this user
/// namespace may not clear them.
/// Errors: io with EINVAL (nothing is mounted there), denied (a locked "read-only").
Result<void> set_attributes(const sys::Fd& mount, const plan::MountAttributes& attributes,
                            const std::string& name);

/// Removes the options from `data` that mount(2) takes as flags, and returns them as MS_*.
unsigned long take_mount_flags(std::vector<std::string>& data);

/// The MS_* flags of mount(2) for MOUNT_ATTR_*.
unsigned long mount_flags(uint64_t attributes);

/// MS_SHARED and the like.
uint64_t propagation_flag(plan::Propagation type);

}  // namespace berth::runtime
