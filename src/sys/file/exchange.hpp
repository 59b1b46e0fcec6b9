// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Exchanges the names of two files atomically. renameat2(2) RENAME_EXCHANGE Errors: unsupported
/// (the file system cannot), not_found.
Result<void> rename_exchange(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                             const std::string& to);

}  // namespace berth::sys
