// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Copies what lies in directory `from`, with owners, modes, times and extended attributes, into
/// the empty directory `to`, by handle alone: links are copied, not followed, and what is mounted
/// below `from` is left out. Owners, device nodes and attributes that may not be set are left out
/// too. `name` is for errors.
/// Shape: at most 128 directories deep.
/// Errors: usage (deeper), io (no space), denied (an entry that may not be read).
Result<void> copy_tree(const Fd& from, const Fd& to, const std::string& name);

/// Copies the one `entry` of `from`, which is no directory, likewise. Errors: io, busy (it
/// changes).
Result<void> copy_entry(const Fd& from, const Fd& to, const std::string& entry);

/// Gives the directory `to` the owner, mode, attributes and times of `from`.
Result<void> copy_directory_metadata(const Fd& from, const Fd& to, const std::string& name);

}  // namespace berth::sys
