// SPDX-License-Identifier: Apache-2.0
// Files that decide what privileged code does.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Reads a file that nobody but root and the effective user can have written: it is one of theirs
/// (in a user namespace, root of outside shows as the overflow id and counts where the file could
/// not be written by us), and neither its group nor others may write to it. Looked at on the open
/// handle, so that what was checked is what is read. So are the directories of an absolute path;
/// one with the sticky bit may be writable by all, as /tmp is: below it the overflow id counts for
/// nobody, and no link is followed, until a directory is root's or the user's by its own id.
/// Nothing when it is not there.
/// Errors: denied (those checks, no permission), corrupt (no regular file, more than `max_bytes`).
Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes);
/// The same below the open directory `dir`, whose own place is not looked at.
Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes);

/// The checks of an open file alone, for one whose place others vouch for. Errors: denied.
Result<void> check_trusted(const Fd& file, const std::string& path);

/// Opens a directory in which nobody but root and the effective user can have put anything: the
/// same checks, for it and for those above. Nothing when it is not there. Errors: denied.
Result<std::optional<Fd>> open_trusted_directory_if_exists(const std::string& path);

}  // namespace berth::sys
