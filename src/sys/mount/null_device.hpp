// SPDX-License-Identifier: Apache-2.0
// The host's null device and similar devices as our standard streams, and safe replacements for a
// container.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The first call of every main(): opens the null device for each closed standard stream. Prints an
/// error as the error line of `program` on standard error, if that is open. False: the program has
/// to end.
[[nodiscard]] bool has_standard_streams(std::string_view program);

/// The null device of a container: `/dev/null` below `root`, as an O_PATH handle. Empty if it is
/// missing or another file.
Fd find_null_device(const Fd& root);

/// Reopens each standard stream of this process that is the host's null device, or zero, full,
/// random or urandom. Otherwise root in a container could change the mode, owner or times of the
/// host's inode, which would affect the whole host. Three ways are tried. The first, for the null
/// device, is `own`, the container's device by find_null_device(). The second is a new node in a
/// private tmpfs. The third, if this process may not make nodes, is the host's device on a
/// read-only view of its mount, which still allows reads and writes. The null device is then open
/// for both reading and writing, whatever it was open for, as under runc and crun. If all three
/// ways fail, the stream stays as it is.
/// COMPAT(5.2): no fsmount(2), so only `own` is left. fsmount(2), mount_setattr(2), dup2(2)
void exchange_null_streams(const Fd& own);

}  // namespace berth::sys
