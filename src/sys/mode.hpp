// SPDX-License-Identifier: Apache-2.0
// Modes and owners. `name` is for errors.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

inline constexpr gid_t kSameGroup = static_cast<gid_t>(-1);

/// The mode as given, whatever the caller's umask. fchmod(2)
Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name);
/// The same for an entry that is known to be no link. fchmodat(2)
Result<void> change_mode_at(const Fd& dir, const std::string& name, mode_t mode);

/// fchown(2). EINVAL: an id that this user namespace has no mapping for.
Result<void> change_owner(const Fd& fd, uid_t uid, gid_t gid, const std::string& name);
/// The same without following a link. fchownat(2)
Result<void> change_owner_at(const Fd& dir, const std::string& name, uid_t uid, gid_t gid);

}  // namespace berth::sys
