// SPDX-License-Identifier: Apache-2.0
// The host's null device, and similar ones, in our own standard streams, and the safe replacements
// for a container.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The first call of every main(): the same, and on failure prints the error line of `program` on
/// standard error, if open. False: the program has to end.
[[nodiscard]] bool has_standard_streams(std::string_view program);

/// The null device of a container: `/dev/null` below `root`, as an O_PATH handle. Nothing if it is
/// missing or another file.
Fd find_null_device(const Fd& root);

/// Reopens each standard stream of this process that is the null device, or zero, full, random or
/// urandom: root in a container owns the host's inode, and changes of its mode, owner or time would
/// affect the whole host. Uses the container's `own` of find_null_device(); without it, and for the
/// other devices, a new node in a private tmpfs; where this process may not make nodes, the host's
/// device on a read-only view of its mount, which still allows reads and writes. The null device is
/// then open for both, whatever it was open for, as under runc and crun. If all three fail the
/// stream stays.
/// COMPAT(5.2): no fsmount(2), so only `own` is left. fsmount(2), mount_setattr(2), dup2(2)
void exchange_null_streams(const Fd& own);

}  // namespace berth::sys
