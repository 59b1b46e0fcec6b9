// SPDX-License-Identifier: Apache-2.0
// The mount calls that use file descriptors (Linux 5.2 and later), and mount(2) and umount2(2).
// Every wrapper returns Kind::unsupported for ENOSYS; the caller chooses the fallback.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// fsopen(2)
Result<Fd> fsopen(const std::string& type);
/// fsconfig(2) FSCONFIG_SET_STRING. Sets an option of the file system `context`.
Result<void> fsconfig_string(const Fd& context, const std::string& key, const std::string& value);
/// fsconfig(2) FSCONFIG_SET_FLAG
Result<void> fsconfig_flag(const Fd& context, const std::string& key);
/// Sets an option in the form of mount(8): "key=value" or "flag".
Result<void> fsconfig_option(const Fd& context, const std::string& option);
/// fsconfig(2) FSCONFIG_CMD_CREATE. On failure the error contains the kernel's messages.
Result<void> fsconfig_create(const Fd& context);
/// fsmount(2); `attributes` are MOUNT_ATTR_*. The mount is detached: it ends when the descriptor is
/// closed.
Result<Fd> fsmount(const Fd& context, unsigned attributes);
/// open_tree(2); `flags` such as OPEN_TREE_CLONE, AT_RECURSIVE, AT_EMPTY_PATH.
Result<Fd> open_tree(const Fd& dir, const std::string& path, unsigned flags);
/// move_mount(2) of a detached mount onto the file or directory `target`.
Result<void> move_mount_to_fd(const Fd& mount, const Fd& target, const std::string& name);
enum class Recursive { no, yes };
/// mount_setattr(2) on the mount itself; `recursive` covers the mounts below it.
Result<void> mount_setattr(const Fd& mount, uint64_t set, uint64_t clear, uint64_t propagation,
                           Recursive recursive, const std::string& name);
/// Maps the ids of a detached mount by the maps of `user_namespace`. Errors: io with EINVAL (a file
/// system without id mapping), denied (no CAP_SYS_ADMIN over the file system, or the mount has a
/// mapping already), unsupported (Linux < 5.12). mount_setattr(2) MOUNT_ATTR_IDMAP
Result<void> map_mount_ids(const Fd& mount, const Fd& user_namespace, Recursive recursive,
                           const std::string& name);
/// mount(2); empty strings become null pointers.
Result<void> mount(const std::string& source, const std::string& target, const std::string& type,
                   unsigned long flags, const std::string& data);
/// Keeps new mounts of this mount namespace out of all other namespaces; mounts made there still
/// propagate here.
/// Errors: unsupported ('/' is not a mount point, as in a chroot), denied.
/// mount_namespaces(7) MS_SLAVE
Result<void> keep_mounts_here();
/// Enters a new mount namespace, and calls keep_mounts_here() there.
Result<void> leave_mount_namespace();
/// The id of the mount of `place`, unique while it is mounted. statx(2) STATX_MNT_ID
Result<uint64_t> mount_id(const Fd& place, const std::string& name);
/// umount2(2)
Result<void> unmount(const std::string& target, int flags);
/// Detaches the mount at `target` at once, with all mounts below it. MNT_DETACH
Result<void> detach(const std::string& target);

/// Whether this process may mount a procfs for a new pid namespace, as every container has. Tries
/// this in a child; for processes without threads. If a mount covers part of the visible procfs,
/// only root of the machine may mount one (mount_too_revealing() in fs/namespace.c).
/// Errors: denied, unsupported.
Result<void> try_procfs();

}  // namespace berth::sys
