// SPDX-License-Identifier: Apache-2.0
// Files that control privileged code.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Reads a file that only root and the effective user can have written: it belongs to one of them,
/// and no other user may write to it, nor a group, except an ordinary user's own group, which has
/// the number of the user. In a user
/// namespace files of the outer root show the overflow id, which counts as root if we could not
/// write the file. All this is checked on the open handle, so that the checked file is the one that
/// is read. The directories of an absolute path are checked too. A directory with the sticky bit
/// may be world-writable, as /tmp is. Below such a directory the overflow id does not count and no
/// link is followed, until a directory shows the id of root or of the user. Nothing when it does
/// not exist.
/// Errors: denied (those checks, no permission), corrupt (not a regular file, more than
/// `max_bytes`).
Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes);
/// The same for the file `name` in the open directory `dir`; does not check the path of `dir`.
Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes);

/// Makes only the checks of the open file, for a path that is trusted already. Errors: denied.
Result<void> check_trusted(const Fd& file, const std::string& path);

/// Opens a directory in which only root and the effective user can have created entries: makes the
/// same checks for the directory and its parents. Nothing when it does not exist. Errors: denied.
Result<std::optional<Fd>> open_trusted_directory_if_exists(const std::string& path);

}  // namespace berth::sys
