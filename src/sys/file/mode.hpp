// SPDX-License-Identifier: Apache-2.0
// These functions change modes, owners and times through a file descriptor: another process that
// may write to a directory can exchange a file in it between two calls that take its name
// (CWE-367). The descriptor may be O_PATH. `name` is for errors alone. tools/layers.py refuses
// calls by name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

inline constexpr gid_t kSameGroup = static_cast<gid_t>(-1);

/// The entry `name` of `dir` itself, no matter what it is: a link is not followed, a device not
/// opened.  Errors: not_found. open(2) O_PATH | O_NOFOLLOW
Result<Fd> hold_entry(const Fd& dir, const std::string& name);
/// The same for what was just made there. `type` is S_IFIFO, S_IFLNK, …; `device` counts for
/// S_IFCHR and S_IFBLK.
/// Errors: not_found; busy: another file is in its place by now, and not to be touched.
Result<Fd> hold_made(const Fd& dir, const std::string& name, mode_t type, dev_t device = 0);

/// The mode as given, whatever the caller's umask.  Errors: denied; unsupported for a link.
/// fchmod(2)
Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name);

/// Of a link the link's own. EINVAL: an id that this user namespace has no mapping for. fchownat(2)
Result<void> change_owner(const Fd& fd, uid_t uid, gid_t gid, const std::string& name);

struct FileTime {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};
/// The time of last modification; that of the last access stays. Of a link the link's own.
/// utimensat(2)
Result<void> set_modified(const Fd& fd, FileTime time, const std::string& name);
/// The same for the time of the last access too.
Result<void> set_times(const Fd& fd, FileTime accessed, FileTime modified, const std::string& name);

}  // namespace berth::sys
