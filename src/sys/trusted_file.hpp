// SPDX-License-Identifier: Apache-2.0
// Files that decide what privileged code does.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// Reads a file that nobody but root and the effective user can have written: it is one of theirs
/// (in a user namespace, root of outside shows as the overflow id and counts where the file could
/// not be written by us), and neither its group nor others may write to it. Looked at on the open
/// handle, so that what was checked is what is read. Nothing when it is not there.
/// Errors: denied (those checks, no permission), corrupt (no regular file, more than `max_bytes`).
Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes);
/// The same for an entry of an open directory.
Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes);

}  // namespace berth::sys
