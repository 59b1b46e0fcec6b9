// SPDX-License-Identifier: Apache-2.0
// The null device of the host in our own standard streams, and as a container may have it; and
// those like it.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Opens the null device as each standard stream that is closed, as Go's runtime does for docker
/// and podman: else the next file that is opened would be one, and what is meant for the user would
/// be written into it.  Errors: io (no /dev/null). open(2)
Result<void> open_standard_streams();
/// Every main() begins with this: the same, and where it cannot be, the one error line of `program`
/// on a standard error that is open. False: it has to end.
[[nodiscard]] bool has_standard_streams(std::string_view program);

/// The null device of a container: `/dev/null` below `root`, as an O_PATH handle. Nothing where
/// another file, or none, is in its place.
Fd find_null_device(const Fd& root);

/// Has each standard stream of this process that is the null device, or zero, full, random or
/// urandom, opened anew: root in a container owns the host's inode, and the mode, owner or time
/// that it sets there is set for all of the host. The function opens the container's `own` of
/// find_null_device(); where there is none, and for the others, a new node in a tmpfs that nobody
/// else sees; where this process may not make nodes, the host's device on a read-only view of its
/// mount, through which it is read and written all the same. The null device is open for both then,
/// whatever it was open for, as under runc and crun. If all three fail the stream stays.
/// COMPAT(5.2): no fsmount(2), so only `own` is left. fsmount(2), mount_setattr(2), dup2(2)
void exchange_null_streams(const Fd& own);

}  // namespace berth::sys
