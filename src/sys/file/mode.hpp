// SPDX-License-Identifier: Apache-2.0
// These functions change modes, owners and times through a file descriptor. Between two calls by
// name, another process that may write to the directory could replace the file (CWE-367). The
// descriptor may be O_PATH. `name` is only for errors. tools/layers.py refuses calls by name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

inline constexpr gid_t kSameGroup = static_cast<gid_t>(-1);

/// A handle of the entry `name` of `dir` itself: does not follow a link and does not open a device.
/// Errors: not_found. open(2) O_PATH | O_NOFOLLOW
Result<Fd> hold_entry(const Fd& dir, const std::string& name);
/// As hold_entry(), for an entry that was just made. `type` is S_IFIFO, S_IFLNK, …; `device`
/// matters for S_IFCHR and S_IFBLK.
/// Errors: not_found; busy (another file has taken its place, and must not be touched).
Result<Fd> hold_made(const Fd& dir, const std::string& name, mode_t type, dev_t device = 0);

/// Sets the mode as given, ignoring the umask.  Errors: denied; unsupported for a link.
/// fchmod(2)
Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name);

/// Sets the owner; for a link, that of the link itself. EINVAL: an id without a mapping in this
/// user namespace. fchownat(2)
Result<void> change_owner(const Fd& fd, uid_t uid, gid_t gid, const std::string& name);

struct FileTime {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};
/// Sets the time of last modification, not that of last access; for a link, that of the link
/// itself. utimensat(2)
Result<void> set_modified(const Fd& fd, FileTime time, const std::string& name);
/// Sets the times of last access and of last modification.
Result<void> set_times(const Fd& fd, FileTime accessed, FileTime modified, const std::string& name);

/// Sets the umask of this process and its children; returns the old one. umask(2)
mode_t set_umask(mode_t mask);

}  // namespace berth::sys
