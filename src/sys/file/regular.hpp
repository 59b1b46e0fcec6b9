// SPDX-License-Identifier: Apache-2.0
// Regular files under names that others control: in a container's root, a layer, a build context.
// Opening a device may have effects (a watchdog starts, a tape rewinds), and our device cgroup,
// that of the host, does not prevent it. Opening a FIFO blocks. So the type is checked on an O_PATH
// handle, and the file is opened through that handle. tools/layers.py refuses any other open in a
// root.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Opens the file of `held`, an O_PATH handle, for reading; nothing: it is not a regular file.
/// `name` is for errors.  Errors: denied, io.
Result<std::optional<Fd>> open_regular(const Fd& held, const std::string& name);

/// Opens entry `name` of `dir` without following a link; nothing: it is missing or not a regular
/// file.
/// Errors: denied, io.
Result<std::optional<Fd>> find_regular(const Fd& dir, const std::string& name);

/// Opens the regular file at `path` of a container's `root`, with links resolved inside the root;
/// nothing: it is missing or not a regular file.
/// Errors: denied, io, usage (a symlink loop). openat2(2) RESOLVE_IN_ROOT
Result<std::optional<Fd>> find_regular_in_root(const Fd& root, const std::string& path);

/// The bytes of the file that find_regular_in_root() opens. Errors: as that function, corrupt (more
/// than `max_bytes`).
Result<std::optional<std::string>> read_regular_in_root(const Fd& root, const std::string& path,
                                                        size_t max_bytes);

}  // namespace berth::sys
