// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// The first of the character `devices` (st_rdev) that process `pid` has open or mapped; nothing
/// where it has none of them, or has ended. File systems of the process are not asked: one of its
/// own making would never answer. Errors: denied (another user's process), io.
/// proc_pid_fd(5), proc_pid_map_files(5), statx(2) AT_STATX_DONT_SYNC
Result<std::optional<dev_t>> find_open_device(pid_t pid, const std::vector<dev_t>& devices);

}  // namespace berth::sys
