// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Copies the content of directory `from`, with owners, modes, times and extended attributes, into
/// the empty directory `to`, by handle only. Links are copied, not followed. Left out are mounts
/// below `from`, and owners, device nodes and attributes that we may not set. `name` is for errors.
/// Shape: at most 128 directories deep.
/// Errors: usage (deeper), io (no space), denied (an unreadable entry).
Result<void> copy_tree(const Fd& from, const Fd& to, const std::string& name);

/// Copies `entry` of `from`, which is not a directory, in the same way. Errors: io, busy (the file
/// changes).
Result<void> copy_entry(const Fd& from, const Fd& to, const std::string& entry);

/// Gives the directory `to` the owner, mode, attributes and times of `from`.
Result<void> copy_directory_metadata(const Fd& from, const Fd& to, const std::string& name);

}  // namespace berth::sys
