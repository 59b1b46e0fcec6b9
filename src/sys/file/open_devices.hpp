// SPDX-License-Identifier: Apache-2.0
// Examines the files of other processes without asking the file systems: a FUSE server of a user
// might never answer. statx(2) AT_STATX_DONT_SYNC
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

struct QuietStat {
  mode_t mode = 0;   ///< only the file type is reliable
  dev_t device = 0;  ///< the device of the file system
  dev_t rdev = 0;
  uint64_t mount = 0;  ///< id of the mount, as in mountinfo
};
/// The status of `name` in `dir`, without following a link; of `dir` itself if `name` is empty.
/// Nothing if it does not exist. Errors: denied, io.
Result<std::optional<QuietStat>> stat_quietly(const Fd& dir, const std::string& name);

/// The first of the character `devices` (st_rdev) that a thread of process `pid` has open or
/// mapped; nothing if no thread has one, or if the process has ended. Errors: denied (another
/// user's process, a file that cannot be examined), io. proc_pid_fd(5), proc_pid_map_files(5)
Result<std::optional<dev_t>> find_open_device(pid_t pid, const std::vector<dev_t>& devices);

}  // namespace berth::sys
