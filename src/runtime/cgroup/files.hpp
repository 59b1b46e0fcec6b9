// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// Writes a value into a file of a cgroup in one write(2), which the kernel accepts or refuses.
/// Errors: not_found (no such file), denied, io (the value; names it and the file).
Result<void> write_cgroup_file(const sys::Fd& directory, const std::string& name,
                               const std::string& value);

/// Whether this errno means missing permission: EACCES, EPERM, EROFS.
bool is_permission(int code);

/// The names of the child cgroups of the cgroup `directory`; empty if it cannot be read.
std::vector<std::string> child_cgroups(const sys::Fd& directory);

/// Calls `visit` with `directory` and every cgroup below it, at any depth. Holds one descriptor and
/// does not recurse, because a container may nest more levels than we have descriptors or stack
/// frames. Stops at the first error.
Result<void> visit_cgroups(const sys::Fd& directory,
                           const std::function<Result<void>(const sys::Fd&)>& visit);

/// Appends the processes in `directory` and below to `pids`.
Result<void> append_processes(const sys::Fd& directory, std::vector<pid_t>& pids);

}  // namespace berth::runtime
