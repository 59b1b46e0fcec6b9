// SPDX-License-Identifier: Apache-2.0
// Files that control privileged code.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Reads a file that only root and the effective user can have written: it belongs to one of them
/// (in a user namespace the outer root shows as the overflow id, and counts if we could not write
/// the file), and neither its group nor others may write to it. Checked on the open handle, so that
/// the checked file is the one that is read. The directories of an absolute path are checked too;
/// one with the sticky bit may be world-writable, as /tmp is: below it the overflow id does not
/// count, and no link is followed, until a directory belongs to root or the user by its own id.
/// Nothing when it does not exist.
/// Errors: denied (those checks, no permission), corrupt (no regular file, more than `max_bytes`).
Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes);
/// The same below the open directory `dir`; does not check its path.
Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes);

/// Only the checks of an open file, if its path is trusted already. Errors: denied.
Result<void> check_trusted(const Fd& file, const std::string& path);

/// Opens a directory in which only root and the effective user can have put anything: the same
/// checks, for it and for its parents. Nothing when it does not exist. Errors: denied.
Result<std::optional<Fd>> open_trusted_directory_if_exists(const std::string& path);

}  // namespace berth::sys
