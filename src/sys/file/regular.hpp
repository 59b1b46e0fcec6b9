// SPDX-License-Identifier: Apache-2.0
// Regular files where somebody else decides what a name is: a container's root, a layer, a build
// context. Opening a device may do something (a watchdog starts, a tape rewinds), and our device
// cgroup is the host's; opening a FIFO waits. So what a name is, is asked of an O_PATH handle, and
// the file is opened through that handle. tools/layers.py refuses another way into a root.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The file that `held`, an O_PATH handle, is of, opened for reading; nothing: it is no regular
/// file. `name` is for errors.  Errors: denied, io.
Result<std::optional<Fd>> open_regular(const Fd& held, const std::string& name);

/// Entry `name` of `dir`, a link not followed; nothing: it is not there, or no regular file.
/// Errors: denied, io.
Result<std::optional<Fd>> find_regular(const Fd& dir, const std::string& name);

/// `path` of a container's `root`, with links inside of it; nothing as above.
/// Errors: denied, io, usage (a circle of links). openat2(2) RESOLVE_IN_ROOT
Result<std::optional<Fd>> find_regular_in_root(const Fd& root, const std::string& path);

/// Its bytes.  Errors: as above, corrupt (more than `max_bytes`).
Result<std::optional<std::string>> read_regular_in_root(const Fd& root, const std::string& path,
                                                        size_t max_bytes);

}  // namespace berth::sys
